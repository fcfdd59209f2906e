"""Which tests of a report lie in the change's test files, by the place that every id begins with.

That place is a file (pytest, unittest, the runners for JavaScript), a package (`example.com/shop/till::TestX` of go),
a class (`com.acme.TillTest::opens` of JUnit), or a target of a crate (`shop::test/till::opens` of cargo). Where it is
no file, a test is the change's own when one of the change's test files belongs to that place.
"""

import re
from collections.abc import Callable, Collection, Iterable

_JVM = (".java", ".kt", ".kts", ".groovy", ".scala")
_RUST_TARGET = re.compile(r"(?:.*/)?tests/([^/]+?)(?:\.rs|/.*\.rs)")
_RUST_MODULE = re.compile(r"(?:.*/)?src/(.*?)(?:/?(?:lib|main|mod))?\.rs")


class OwnTests:
    """The change's test files, and the tests that lie in them; `ids` are all tests of its reports."""

    def __init__(self, test_files: Collection[bytes], ids: Iterable[str] = ()) -> None:
        # As `runners.report.storable_text` shows a path that is not UTF-8.
        self._files = frozenset(path.decode("utf-8", "backslashreplace") for path in test_files)
        self._rules = [rule for file in self._files if (rule := _rule(file))]
        self._ids = ids

    def among(self, test_ids: Iterable[str]) -> frozenset[str]:
        """Those of `test_ids` that lie in the change's test files."""
        known: dict[tuple[str, ...], bool] = {}
        found = set()
        for test_id in test_ids:
            segments = tuple(test_id.split("::"))
            place = segments[:1] if segments[0] in self._files else segments[:-1]
            if place not in known:
                known[place] = self._is_own(place)
            if known[place]:
                found.add(test_id)
        return frozenset(found)

    def files_in(self, node_id: str) -> frozenset[str]:
        """The change's test files that lie in a node which could not be collected."""
        file = node_id.partition("::")[0]
        found = {one for one in self._files if one == file or is_inside(one, node_id)}
        place = tuple(node_id.split("::"))
        if len(place) == 2 and place[1].startswith(("lib", "bin/")):
            # A target of a crate with the modules in it.
            found |= {one for one in self._files if _RUST_MODULE.fullmatch(one)}
        return frozenset(found) | {one for one in self._files if (rule := _rule(one)) and rule(place)}

    def _is_own(self, place: tuple[str, ...]) -> bool:
        if place and place[0] in self._files:
            return True
        if any(rule(place) for rule in self._rules):
            return True
        # Tests beside go.mod, whose path an id does not show: their package lies above all others.
        beside = any(file.endswith("_test.go") and "/" not in file for file in self._files)
        return beside and bool(place) and not any(_is_above(test_id, place[0]) for test_id in self._ids)


def _rule(file: str) -> Callable[[tuple[str, ...]], bool] | None:
    """Tells whether a test file belongs to a place, which is an id without the name of the test."""
    folder, _, name = file.rpartition("/")
    if name.endswith("_test.go"):
        return lambda place: bool(folder) and bool(place) and f"/{place[0]}".endswith(f"/{folder}")
    if name.endswith(_JVM):
        path = f"/{file.rpartition('.')[0]}"
        return lambda place: any(path.endswith("/" + re.split(r"[$]", one)[0].replace(".", "/")) for one in place)
    if target := _RUST_TARGET.fullmatch(file):
        return lambda place: len(place) > 1 and place[1] == f"test/{target[1]}"
    if module := _RUST_MODULE.fullmatch(file):
        inner = tuple(part for part in module[1].split("/") if part)
        return lambda place: len(place) > 1 and not place[1].startswith("test/") and place[2 : 2 + len(inner)] == inner
    return None


def _is_above(test_id: str, package: str) -> bool:
    place = test_id.partition("::")[0]
    return package.startswith(f"{place}/")


def is_inside(test_id: str, node_id: str) -> bool:
    """Whether a file or test lies in a node that could not be collected: a class, a file, or a folder and its conftest.

    pytest names the whole suite "" and, before version 8, a package by its `__init__.py`; cargo names it ".".
    """
    node_id = node_id.removesuffix("/__init__.py")
    return node_id in ("", ".") or test_id.startswith((f"{node_id}::", f"{node_id}/"))
