"""The names that a tree did not have, by what compilers and interpreters say of it. Pure: messages in, names out.

A change whose tests do not compile or import before it can be a task only when the problem text names what they
miss. Each pattern is the wording of one tool; a message in another wording gives no name, and never a wrong one.
"""

import re
from collections.abc import Iterable

_PATTERNS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # CPython
        r"ImportError: cannot import name '([^']+)'",
        r"ModuleNotFoundError: No module named '([^']+)'",
        r"AttributeError: (?:partially initialized )?module '[^']+' has no attribute '([^']+)'",
        r"AttributeError: type object '[^']+' has no attribute '([^']+)'",
        r"NameError: name '([^']+)' is not defined",
        # Go (cmd/compile, go list)
        r"undefined: ([\w.]+)",
        r"undefined \(type [^)]* has no field or method (\w+)",
        r"unknown field (\w+) in struct literal",
        r"package ([\w./-]+) is not in (?:std|GOROOT)",
        r"no required module provides package ([\w./-]+)",
        # rustc: E0412, E0422, E0423, E0425, E0433, E0405, E0432, E0599, E0609, E0560
        r"cannot find [\w ,/]+ `([^`]+)` in",
        r"unresolved imports? `([^`]+)`",
        r"(?:use of (?:undeclared|unresolved) [\w ]+|could not find) `([^`]+)`",
        r"no (?:method|function or associated item|variant or associated item|associated item|variant) named `([^`]+)`",
        r"no field `([^`]+)` on type",
        r"has no field named `([^`]+)`",
        # javac, which names the symbol on a line of its own, and kotlinc
        r"symbol:\s+(?:method|class|variable|interface|enum|record|static)\s+(\w+)",
        r"error: package ([\w.]+) does not exist|package ([\w.]+) does not exist$",
        r"[Uu]nresolved reference:? '?(\w+)",
        # tsc, Node, bundlers
        r"has no exported member (?:named )?'([^']+)'",
        r"Property '([^']+)' does not exist on type",
        r"Cannot find name '([^']+)'",
        r"Cannot find module '([^']+)'",
        r"does not provide an export named '([^']+)'",
        r"Failed to resolve import \"([^\"]+)\"",
    )
)
_SOURCE_SUFFIX = re.compile(r"\.(?:[cm]?[jt]sx?|py|json)$")


def missing_names(messages: Iterable[str]) -> tuple[str, ...]:
    """The names that errors say are missing, shortened to their last part, sorted.

    `No module named 'shop.till'` gives `till`, `unresolved import shop::Till` gives `Till`, `Cannot find module
    '../src/till.js'` gives `till`: it is by these that a text can name them.
    """
    found: set[str] = set()
    for message in messages:
        for pattern in _PATTERNS:
            for groups in pattern.findall(message):
                for name in (groups,) if isinstance(groups, str) else groups:
                    found.update(filter(None, map(_last_part, name.split(", "))))
    return tuple(sorted(found))


def _last_part(name: str) -> str:
    without_suffix = _SOURCE_SUFFIX.sub("", name.strip())
    return re.split(r"::|[./\\]", without_suffix)[-1].strip("{} ")
