"""Which test files a change can reach: its own, those of the same module, and those that import its sources. Pure.

For suites that take too long to be run whole for each candidate. What is left out can hide a test that the change
breaks, so one candidate in ten runs the whole suite all the same.
"""

import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Collection, Mapping

from evalpipe.validation.imports import GO, JAVASCRIPT, JVM, PYTHON, Imports

_WHOLE_SUITE_EVERY = 10
_SOURCES = (*PYTHON, *JAVASCRIPT, *GO, *JVM, ".rs")
_DOCUMENTS = (".md", ".rst", ".adoc")
# Folders that part a project by kind and not by module.
_KIND_FOLDERS = frozenset(
    {"src", "lib", "test", "tests", "__tests__", "spec", "specs", "main", "java", "kotlin", "groovy", "scala", "python"}
)
_TEST_WORDS = re.compile(r"^(?:test|spec|it)[_.-]?|[_.-]?(?:tests?|spec|it)$", re.IGNORECASE)


def in_whole_suite_sample(candidate_id: str) -> bool:
    """Whether a candidate is one of the tenth that runs the whole suite whatever is configured; by a hash of its id."""
    digest = hashlib.sha256(candidate_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") % _WHOLE_SUITE_EVERY == 0


def affected_test_files(
    tree: Mapping[bytes, bytes], changed: Collection[bytes], is_test: Callable[[bytes], bool]
) -> tuple[bytes, ...] | None:
    """The test files of `tree` that a change of the files `changed` can reach, sorted; None when that cannot be told.

    `tree` is the change's own, so that a file which the change deletes is not in it. `is_test` tells the files of
    tests, helpers and data among them, from the others. It cannot be told when a change touches what no import
    shows: files that are no source of a language known here, beside documents.
    """
    files = {os.fsdecode(path): data for path, data in tree.items()}
    touched = {os.fsdecode(path) for path in changed}
    if any(_is_unseen(path, is_test) for path in touched):
        return None
    suites = {path for path in files if is_test(os.fsencode(path)) and _holds_tests(path, files[path])}
    found = suites & touched
    imports = Imports(files)
    reached = {path for path in files if path.endswith(_SOURCES) and imports.of(path) & touched}
    for path in touched | (reached - suites):
        if path in touched or is_test(os.fsencode(path)):
            found |= _below_conftest(path, suites)
    helpers = {path for path in reached - suites if is_test(os.fsencode(path))}
    found |= suites & (reached | {path for path in suites if imports.of(path) & helpers})
    for path in touched:
        if path.endswith(_SOURCES) or is_test(os.fsencode(path)):
            found |= {suite for suite in suites if _same_module(path, suite, files)}
    return tuple(sorted(os.fsencode(path) for path in found)) or None


def _is_unseen(path: str, is_test: Callable[[bytes], bool]) -> bool:
    """Whether a change of a file can be felt by tests that import nothing of it."""
    if path.endswith(_SOURCES) or path.lower().endswith(_DOCUMENTS):
        return False
    # Data of a test lies beside the tests that read it, and these are found as the same module.
    return not is_test(os.fsencode(path))


def _holds_tests(path: str, data: bytes) -> bool:
    """Whether a file among the tests is one that a runner can be asked to run."""
    name = posixpath.basename(path)
    if path.endswith(PYTHON):
        return (
            name not in ("conftest.py", "__init__.py") and re.search(rb"\bdef test|\bclass \w*Test", data) is not None
        )
    if path.endswith(JAVASCRIPT):
        return re.search(rb"\b(?:test|it|describe|suite)\b\s*[.(]", data) is not None
    if path.endswith(GO):
        return name.endswith("_test.go")
    if path.endswith(JVM):
        return re.search(rb"@\w*Test\b|extends \w*TestCase|extends Specification|Spec\b", data) is not None
    return path.endswith(".rs") and re.search(rb"#\[\w*(?:::)?test\b|#\[cfg\(test\)\]", data) is not None


def _below_conftest(path: str, suites: Collection[str]) -> set[str]:
    folder, _, name = path.rpartition("/")
    if name != "conftest.py":
        return set()
    return {suite for suite in suites if not folder or suite.startswith(f"{folder}/")}


def _same_module(path: str, suite: str, files: Mapping[str, bytes]) -> bool:
    """Whether a test file belongs to the module of a changed file: the crate, the package, or the file of that name."""
    if path.endswith(".rs"):
        return suite.endswith(".rs") and _crate(path, files) == _crate(suite, files)
    if path.endswith((*GO, *JVM)):
        return _module_folder(path) == _module_folder(suite)
    if not path.endswith(_SOURCES):
        # Data of tests, read by those that lie above it.
        return f"{posixpath.dirname(path)}/".startswith(f"{posixpath.dirname(suite)}/")
    stem = _TEST_WORDS.sub("", _stem(suite))
    if stem == _stem(path):
        folders = _module_folder(path), _module_folder(suite)
        return folders[1] == () or folders[0][-len(folders[1]) :] == folders[1]
    return False


def _module_folder(path: str) -> tuple[str, ...]:
    """The folders of a file without those that part a project by kind: `src/main/java/com/acme` is `com/acme`."""
    return tuple(part for part in posixpath.dirname(path).split("/") if part and part not in _KIND_FOLDERS)


def _stem(path: str) -> str:
    return posixpath.basename(path).split(".")[0]


def _crate(path: str, files: Mapping[str, bytes]) -> str:
    folder = posixpath.dirname(path)
    while folder and f"{folder}/Cargo.toml" not in files:
        folder = posixpath.dirname(folder)
    return folder
