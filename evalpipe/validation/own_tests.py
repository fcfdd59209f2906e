"""Which tests of a report lie in the change's test files, by the place that every id begins with."""

from collections.abc import Collection, Iterable


class OwnTests:
    """The change's test files, and the tests that lie in them.

    The part of an id before `::` is a file (pytest, jest), a package (Go: the folder's import path; Rust: a test
    target or a module) or a class (Java). Where it is no file, a test is the change's own when one of the change's
    test files can lie at that place.
    """

    def __init__(self, test_files: Collection[bytes]) -> None:
        # As `runners.report.storable_text` shows a path that is not UTF-8.
        self.files = frozenset(path.decode("utf-8", "backslashreplace") for path in test_files)

    def among(self, test_ids: Iterable[str]) -> frozenset[str]:
        """Those of `test_ids` that lie in the change's test files."""
        known: dict[str, bool] = {}
        found = set()
        for test_id in test_ids:
            place = test_id.partition("::")[0]
            if place not in known:
                known[place] = place in self.files
            if known[place]:
                found.add(test_id)
        return frozenset(found)

    def files_in(self, node_id: str) -> frozenset[str]:
        """The change's test files that lie in a node which could not be collected."""
        file = node_id.partition("::")[0]
        return frozenset(one for one in self.files if one == file or is_inside(one, node_id))


def is_inside(test_id: str, node_id: str) -> bool:
    """Whether a file or test lies in a node that could not be collected: a class, a file, or a folder and its conftest.

    pytest names the whole suite "" and, before version 8, a package by its `__init__.py`.
    """
    node_id = node_id.removesuffix("/__init__.py")
    return not node_id or test_id.startswith((f"{node_id}::", f"{node_id}/"))
