"""Which test files an agent must not see: those in which a fail-to-pass test exists before the change in some form.

An agent that finds the test that will judge it writes to the test. A whole file is taken, because a test cannot be cut
out of a file in every language.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from evalpipe.history import ObjectReader
from evalpipe.history.instance_proof import versions_of
from evalpipe.tasks.record import Task

# pytest's and JUnit's parameters, and Go's sub-tests.
_NAMED = re.compile(r"([^\W\d]\w*)(?:[\[(/].*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HiddenTests:
    """Test files to leave out of the parent's tree, and the blobs in which the history before it has such tests.

    An agent that gets the history can read these older versions.
    """

    paths: tuple[bytes, ...]
    earlier_versions: tuple[str, ...]


def find_hidden_tests(
    source: ObjectReader, parent: str, test_files: Iterable[bytes], fail_to_pass: Iterable[str]
) -> HiddenTests:
    """The files among `test_files`, those that the change touches, in which the parent names a fail-to-pass test."""
    names = {test_name(test_id) for test_id in fail_to_pass}
    tree = source.read_tree(parent)
    contents = source.read_files(tree, [path for path in test_files if path in tree])
    paths = tuple(sorted(path for path, content in contents.items() if _names_any(content, names)))
    if not paths:
        return HiddenTests((), ())
    present = {tree[path].oid for path in paths}
    older = [oid for oid in versions_of(source, parent, paths) if oid not in present]
    found = (oid for oid, content in source.read_blobs(older) if _names_any(content, names))
    return HiddenTests(paths, tuple(sorted(set(found))))


def hidden_paths(task: Task) -> list[bytes]:
    """The files of the parent that an agent does not get."""
    return [unquote_to_bytes(path) for path in task.hidden_tests]


def test_name(test_id: str) -> str:
    """The name that a test has in its file: the last part of its id, without parameters and Go's sub-tests."""
    last = test_id.rpartition("::")[2]
    named = _NAMED.fullmatch(last)
    return named[1] if named else last


test_name.__test__ = False  # type: ignore[attr-defined]  # pytest would try to collect the name


def _names_any(content: bytes, names: Collection[str]) -> bool:
    text = content.decode("utf-8", "replace")
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)
