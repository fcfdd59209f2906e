from pathlib import Path

import pytest

from evalpipe.history import Repository
from evalpipe.history.instance_proof import versions_of
from evalpipe.tasks.hidden_tests import find_hidden_tests, test_name
from evalpipe_tests.history.builder import Builder, git

NAMES = {
    "tests/test_a.py::test_b": "test_b",
    "tests/test_a.py::TestC::test_b[x-y z[1]]": "test_b",
    "tests.test_a.Case.test_b": "tests.test_a.Case.test_b",
    "example.com/m/pkg::TestA": "TestA",
    "example.com/m/pkg::TestA/sub_test#01": "TestA",
    "src/sum.test.js::sum::adds 1 + 2 (fast)": "adds 1 + 2 (fast)",
    "crate::lib::tests::adds_two": "adds_two",
    "app::com.example.SumTest::adds(int, int)[2]": "adds",
    "x": "x",
    "": "",
}


@pytest.mark.parametrize("test_id", NAMES)
def test_a_test_has_the_name_that_its_file_has(test_id: str) -> None:
    assert test_name(test_id) == NAMES[test_id]


def test_files_that_name_a_fail_to_pass_test_at_the_parent_are_hidden(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    first = builder.commit({b"tests/test_a.py": b"def test_old(): 1\ndef test_more(): 1\n", b":odd": b"1\n"})
    builder.commit({b"tests/test_a.py": b"def test_other(): 2\n"})
    parent = builder.commit(
        {
            b"tests/test_a.py": b"def test_old(): 3\n",
            b"tests/test_b.py": b"def test_oldest(): 3\n",
            b"tests/caf\xe9.py": b"def test_old(): 3\n",
            b":odd": b"2\n",
        }
    )
    builder.commit({b"tests/test_a.py": b"def test_old(): 4\n"})
    repository = Repository(builder.path)
    changed = [b"tests/test_a.py", b"tests/test_b.py", b"tests/test_new.py"]
    found = find_hidden_tests(repository, parent, changed, ["tests/test_a.py::test_old", "tests/test_new.py::test_new"])
    assert found.paths == (b"tests/test_a.py",)
    oldest = git(builder.path, "rev-parse", f"{first}:tests/test_a.py").decode().strip()
    assert found.earlier_versions == (oldest,)
    assert find_hidden_tests(repository, parent, [b"tests/caf\xe9.py"], ["x::test_old"]).paths == (b"tests/caf\xe9.py",)
    new_only = find_hidden_tests(repository, parent, changed, ["tests/test_new.py::test_new"])
    assert (new_only.paths, new_only.earlier_versions) == ((), ())
    assert len(versions_of(repository, parent, [b":odd"])) == 2
    assert len(versions_of(repository, parent, [b"tests/test_a.py"])) == 3
