from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

PROGRAM = resources.files("evalpipe.environments.templates").joinpath("inside", "python_installed.py").read_text()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    folder = tmp_path / "site-packages"
    folder.mkdir()
    return folder


def distribution(folder: Path, name: str, origin: dict[str, object] | None) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))


def check(site: Path, *names: str, modules: tuple[str, ...] = ()) -> tuple[int, str]:
    tree = site.parent / "repo"
    facts = site.parent / "facts.json"
    facts.write_text(json.dumps({"names": names, "modules": modules}))
    start = f"import sys\nsys.path[:0] = [{str(site)!r}, {str(tree)!r}]\n"
    # The program's own line that imports from the future must stay its first.
    program = PROGRAM.replace("import importlib.metadata\n", f"{start}import importlib.metadata\n", 1)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tree), str(facts)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_project_in_place_is_right(site: Path) -> None:
    distribution(site, "my_shop", {"url": f"file://{site.parent}/repo", "dir_info": {"editable": True}})
    distribution(site, "other", None)
    # What setuptools leaves beside the sources.
    distribution(site.parent / "repo", "my_shop", None)
    (site.parent / "repo" / "my_shop.py").touch()
    assert check(site, "my-shop", modules=("my_shop",)) == (0, "")


@pytest.mark.parametrize("origin", [None, {"url": "file:///elsewhere", "dir_info": {"editable": True}}])
def test_a_released_project_is_found_by_its_name(site: Path, origin: dict[str, object] | None) -> None:
    distribution(site, "My.Shop", origin)
    code, said = check(site, "my-shop")
    assert code == 1
    assert "my-shop 1.0 is the released project" in said


def test_a_copy_of_the_tree_is_not_the_tree(site: Path) -> None:
    distribution(site, "unnamed", {"url": f"file://{site.parent}/repo", "dir_info": {}})
    code, said = check(site)
    assert code == 1
    assert "unnamed is a copy" in said


def test_a_module_that_something_else_brings_is_found(site: Path) -> None:
    (site / "my_shop.py").touch()
    code, said = check(site, modules=("my_shop",))
    assert code == 1
    assert "the module my_shop comes from" in said
