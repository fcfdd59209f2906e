"""What a box offers to the stress pass: a way to move its clock, locales, time zones. Found out inside, by a script."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

HOSTNAME = "elsewhere"
"""The hostname of the box that is looked at, and of those that are to have another one."""

# The paths of Debian, Fedora, Alpine and of `make install`; MT is the build for programs with threads.
_FAKETIME_FOLDERS = ("/usr/lib/*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")
_FAKETIME_FILES = ("libfaketimeMT.so.1", "libfaketime.so.1")
_A_MONTH_S = 30 * 24 * 3600
# What runs the tests, in its shortest form: a program may hang from its start on when its clock is moved.
_TOOLS = {
    "cargo": "rustc -vV",
    "gradle": "java -version",
    "maven": "java -version",
    "pytest": "python3 -c 0",
    "unittest": "python3 -c 0",
    **dict.fromkeys(("jest", "mocha", "node", "vitest"), "node -e 0"),
}
_TOOL_S = 20
ZONE = "Pacific/Chatham"
"""Far from UTC and not by whole hours, with summer time, on the other side of the date line from most of America."""


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """`faketime` is the library that moves the clock in this box; None where there is none that works.

    `clock_stops_tool`: there is one, and what runs the tests does not get along with it, as rustc's allocator.
    """

    faketime: str | None = None
    clock_stops_tool: bool = False
    locales: tuple[str, ...] = ()
    has_zones: bool = False
    has_own_name: bool = False


def facts_command(runner: str) -> tuple[str, ...]:
    """The command that looks at a box for the runner of this name; `read_facts` reads what it prints.

    The box is to have the hostname HOSTNAME.
    """
    tool = _TOOLS.get(runner, "true")
    libraries = " ".join(f"{folder}/{file}" for file in _FAKETIME_FILES for folder in _FAKETIME_FOLDERS)
    script = f"""
        echo "name $(uname -n)"
        [ -e /usr/share/zoneinfo/{ZONE} ] && echo zones
        for library in {libraries}; do
            [ -f "$library" ] || continue
            now=$(date +%s)
            moved=$(LD_PRELOAD=$library FAKETIME=+35d date +%s)
            [ $((moved - now)) -gt {_A_MONTH_S} ] || continue
            if timeout -s KILL {_TOOL_S} {tool} >/dev/null &&
                ! timeout -s KILL {_TOOL_S} env LD_PRELOAD=$library FAKETIME=+35d {tool} >/dev/null
            then echo stopped; else echo "faketime $library"; fi
            break
        done
        locale -a | while read -r name; do echo "locale $name"; done
        exit 0
    """
    return ("/bin/sh", "-c", script)


def read_facts(output: bytes) -> BoxFacts:
    """The facts that the command of `facts_command` printed."""
    lines = [line.partition(" ") for line in output.decode("utf-8", "replace").splitlines()]
    found: dict[str, list[str]] = {}
    for kind, _, value in lines:
        found.setdefault(kind, []).append(value)
    return BoxFacts(
        faketime=next(iter(found.get("faketime", [])), None),
        clock_stops_tool="stopped" in found,
        locales=tuple(found.get("locale", [])),
        has_zones="zones" in found,
        has_own_name=HOSTNAME in found.get("name", []),
    )


def other_locale(locales: Sequence[str]) -> str:
    """Of the locales of a box the one that differs most from C.UTF-8: another language, else the bare C locale.

    Turkish first, for its dotted i, then those that write a comma in numbers.
    """
    encoded = [name for name in locales if re.search(r"utf-?8$", name, re.IGNORECASE)]
    for names in (encoded, locales):
        foreign = [name for name in names if not re.match(r"C\b|POSIX|en_", name)]
        if foreign:
            return min(foreign, key=lambda name: ("tr_TR de_DE fr_FR".find(name[:5]) % 100, name))
    return "C"
