from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from evalpipe.environments.templates.python_parts import Folder, LocalProject, Use, Wanted, use_of, wanted_of
from evalpipe.environments.templates.python_requirements import requirements_file, requirements_groups
from evalpipe_tests.environments.templates.memory_tree import MemoryTree


def folder(**files: str) -> Folder:
    return Folder(MemoryTree({name.replace("__", "/"): text for name, text in files.items()}))


def read(files: dict[str, str], name: str) -> Wanted:
    return requirements_file(Folder(MemoryTree(files)), name)


def test_lines_with_comments_hashes_markers_and_continuations_are_requirements() -> None:
    text = """\
# compiled
attrs==23.1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via pytest
tomli==2.0.1 ; python_version < "3.11"  # why
Zope.Interface[test, docs] >= 5
"""
    assert read({"requirements.txt": text}, "requirements.txt").requirements == (
        "attrs==23.1.0",
        'tomli==2.0.1; python_version < "3.11"',
        "Zope.Interface[docs,test]>=5",
    )


def test_includes_are_followed_from_the_place_of_the_file_and_constraints_stay_constraints() -> None:
    files = {
        "requirements/tests.txt": "-r base.txt\n--requirement=../extra.txt\n-c pins.txt\npytest\n",
        "requirements/base.txt": "flask\n",
        "extra.txt": "-rrequirements/base.txt\nredis\n",
        "requirements/pins.txt": "flask==2.3\n",
    }
    found = read(files, "requirements/tests.txt")
    assert found.requirements == ("flask", "redis", "pytest")
    assert found.constraints == ("flask==2.3",)
    assert set(found.files) == set(files)


def test_files_that_include_each_other_come_to_an_end() -> None:
    found = read({"a.txt": "-r b.txt\nx", "b.txt": "-r a.txt\ny"}, "a.txt")
    assert set(found.requirements) == {"x", "y"}


def test_what_cannot_be_resolved_as_of_a_day_is_left_out_with_a_note() -> None:
    text = """\
--index-url https://pypi.example.com/simple
lib @ https://files.example.com/lib-1.0.tar.gz
git+https://example.com/team/tool.git#egg=tool
-e git+https://example.com/team/other.git#egg=other
../outside
six ==
-r missing.txt
pytest
"""
    found = read({"requirements.txt": text}, "requirements.txt")
    assert found.requirements == ("pytest",)
    assert found.locals == ()
    assert len(found.notes) == 7


def test_the_project_itself_and_its_neighbours_are_places_of_the_tree() -> None:
    text = "-e .[cli, http2]\n--editable ./libs/core\n.\n./libs/other[x]\n-e file:///${PROJECT_ROOT}/tools#egg=tools\n"
    assert read({"requirements.txt": text}, "requirements.txt").locals == (
        LocalProject("", ("cli", "http2")),
        LocalProject("libs/core"),
        LocalProject(""),
        LocalProject("libs/other", ("x",)),
        LocalProject("tools"),
    )


def test_usual_names_of_requirements_files() -> None:
    names = {
        "requirements.txt": Use.EVERYTHING,
        "requirements/tests.txt": Use.TESTS,
        "requirements/test-ci.txt": Use.OTHER,
        "requirements/docs.txt": Use.OTHER,
        "requirements/dev.in": Use.DEVELOPMENT,
        "test_requirements.txt": Use.TESTS,
        "test-requirements.txt": Use.TESTS,
        "requirements-test.txt": Use.TESTS,
        "requirements_dev.txt": Use.DEVELOPMENT,
        "dev-requirements.txt": Use.DEVELOPMENT,
        "tests/requirements.txt": Use.TESTS,
        "docs/requirements.txt": Use.OTHER,
        "tests/data.txt": Use.OTHER,
        "requirements/base.txt": Use.OTHER,
        "tests/expected/requirements.txt": Use.OTHER,
    }
    groups = requirements_groups(Folder(MemoryTree(dict.fromkeys(names, "pytest\n"))))
    found = {group.name: group.use for group in groups}
    assert found == {name: use for name, use in names.items() if use is not Use.OTHER}


def test_the_compiled_file_stands_for_the_one_it_was_compiled_from() -> None:
    groups = requirements_groups(
        folder(**{"requirements__tests.in": "pytest", "requirements__tests.txt": "pytest==8.0"})
    )
    assert [group.name for group in groups] == ["requirements/tests.txt"]


def test_names_of_groups() -> None:
    uses = {
        "test": Use.TESTS,
        "tests": Use.TESTS,
        "Testing": Use.TESTS,
        "unit-tests": Use.SOME_TESTS,
        "test_no_images": Use.SOME_TESTS,
        "tests-mypy": Use.OTHER,
        "docs-test": Use.OTHER,
        "latest": Use.OTHER,
        "contest": Use.OTHER,
        "dev": Use.DEVELOPMENT,
        "dev-docs": Use.OTHER,
        "typing": Use.OTHER,
    }
    assert {name: use_of(name) for name in uses} == uses


@given(st.lists(st.text(max_size=30), max_size=5))
def test_any_text_is_a_requirement_a_place_or_a_note(texts: list[str]) -> None:
    found = wanted_of(texts, "here", folder(**{"setup.py": ""}))
    assert all(Requirement(text) for text in found.requirements)
    assert all(not local.folder.startswith(("..", "/")) for local in found.locals)
    assert all("\n" not in note for note in found.notes)


@given(st.text(max_size=200))
def test_any_content_of_a_requirements_file_can_be_read(text: str) -> None:
    found = read({"requirements.txt": text.encode("utf-8", "replace").decode()}, "requirements.txt")
    assert all(Requirement(line) for line in (*found.requirements, *found.constraints))
