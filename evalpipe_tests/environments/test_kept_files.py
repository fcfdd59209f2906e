"""What the installation of a project leaves in its tree for the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evalpipe.environments.kept_files import kept_paths, moving_script

TREE = [b"setup.py", b"src/shop/__init__.py", b"node/package.json"]


@pytest.mark.parametrize(
    ("new", "keeps", "kept"),
    [
        ([b"src/shop/_version.py"], ["src/shop/_version.py"], [b"src/shop/_version.py"]),
        ([b"src/shop/_version.py", b"src/shop/junk"], ["**/_version.py"], [b"src/shop/_version.py"]),
        ([b"node/node_modules/a/b.js", b"node/node_modules/c.js"], ["node/node_modules/**"], [b"node/node_modules"]),
        # A folder that holds anything else is not moved as one.
        ([b"build/a.so", b"build/b.o"], ["build/*.so"], [b"build/a.so"]),
        ([b"build/x/a.so", b"build/y/b.o"], ["**/*.so"], [b"build/x"]),
        # What the tree has stays its own, however it was changed.
        ([b"setup.py"], ["setup.py"], []),
        ([b"node_modules"], ["node_modules"], [b"node_modules"]),
        ([b"junk"], [], []),
        ([b"name \xff'\n"], ["name*"], [b"name \xff'\n"]),
    ],
)
def test_new_files_that_are_named_are_kept(new: list[bytes], keeps: list[str], kept: list[bytes]) -> None:
    assert kept_paths([*TREE, *new], TREE, keeps) == kept


def test_moving_takes_files_folders_and_links_with_any_name(tmp_path: Path) -> None:
    source, target = tmp_path / "tree", tmp_path / "it's kept"
    (source / "a b" / "modules" / "x").mkdir(parents=True)
    (source / "a b" / "modules" / "x" / "file").write_text("1")
    (source / "a b" / "modules").chmod(0o700)
    (source / "a b" / "own").write_text("own")
    (source / "-link").symlink_to("nowhere")
    odd = b"new\nline \xff"
    (source / odd.decode("utf-8", "surrogateescape")).write_text("odd")
    script = tmp_path / "move.sh"
    script.write_bytes(moving_script([b"a b/modules", b"-link", odd], str(target)))
    subprocess.run(["/bin/sh", "-e", str(script)], cwd=source, check=True)
    assert (target / "a b" / "modules" / "x" / "file").read_text() == "1"
    assert (target / "a b" / "modules").stat().st_mode & 0o777 == 0o755
    assert (target / "-link").readlink() == Path("nowhere")
    assert (target / odd.decode("utf-8", "surrogateescape")).read_text() == "odd"
    assert [path.name for path in source.rglob("*")] == ["a b", "own"]


def test_nothing_to_move_makes_nothing(tmp_path: Path) -> None:
    subprocess.run(["/bin/sh", "-ec", moving_script([], str(tmp_path / "kept")).decode()], cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir()) == []
