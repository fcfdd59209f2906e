"""Virtual environments for the process sandbox: made once, whole or not at all."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalpipe.environments import (
    BuildStatus,
    BuiltEnvironment,
    EnvironmentSource,
    ImageSource,
    ProcessEnvironmentBuilder,
    Project,
    Recipe,
    RecipeSource,
    process_builder,
)
from evalpipe.environments.templates.packages import PackagesTemplate
from evalpipe.sandbox import Limits, ProcessSandbox
from evalpipe_tests.environments.trees import NO_TREE


def _source(packages: tuple[str, ...] = (), setup: tuple[str, ...] = ()) -> EnvironmentSource:
    recipe = PackagesTemplate().recipe(Project(NO_TREE, dt.date(2026, 1, 1), None, packages, setup))
    return RecipeSource("host", recipe, NO_TREE, packages, setup)


def _built(builder: ProcessEnvironmentBuilder, source: EnvironmentSource) -> BuiltEnvironment:
    return builder.build(builder.plan(source))


def _bare_venv(folder: Path, *, with_pip: bool, symlinks: bool) -> None:
    """Stands for `venv.create` where a real one would only cost time."""
    assert (with_pip, symlinks) == (True, True)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to("/bin/false")


@pytest.fixture
def builder(tmp_path: Path) -> ProcessEnvironmentBuilder:
    return ProcessEnvironmentBuilder(tmp_path / "environments")


@pytest.mark.slow
def test_environment_is_made_once_and_runs_in_a_box(
    builder: ProcessEnvironmentBuilder, process_sandbox: ProcessSandbox
) -> None:
    source = _source(packages=("iniconfig==2.0.0",), setup=("python -c 'import sys; print(sys.prefix)' > made",))
    planned = builder.plan(source)
    first = builder.build(planned)
    assert first.status is BuildStatus.BUILT, first.log_tail
    assert first.image_digest is not None
    assert builder.exists(first.image_digest)
    assert first.image_digest == f"environment:{planned.build_key[:32]}"
    folder = builder.locate(first.image_digest)
    made = Path(folder) / "made"
    assert made.read_text().strip() == folder
    made_at = made.stat().st_mtime_ns
    again = _built(builder, source)
    assert again.image_digest == first.image_digest
    assert made.stat().st_mtime_ns == made_at
    with process_sandbox.open(folder, Limits(30), {}) as box:
        outcome = box.run(["python3", "-c", "import iniconfig; print(iniconfig.__file__)"], env={}, cwd=box.root)
    assert outcome.stdout.decode().startswith(folder)


@pytest.mark.slow
def test_failing_package_is_a_status_that_names_it_and_leaves_nothing(
    builder: ProcessEnvironmentBuilder, tmp_path: Path
) -> None:
    found = _built(builder, _source(packages=("iniconfig==0.0.0.dev1",)))
    assert found.status is BuildStatus.FAILED
    assert found.image_digest is None
    assert "iniconfig==0.0.0.dev1" in found.log_tail
    assert not list((tmp_path / "environments").glob("*/"))


def test_failing_setup_gives_the_end_of_its_log(
    builder: ProcessEnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venv, "create", _bare_venv)
    found = _built(builder, _source(setup=("seq 1 100\necho the cause >&2\nfalse\necho never",)))
    assert found.status is BuildStatus.FAILED
    lines = found.log_tail.splitlines()
    assert len(lines) == 40
    assert lines[-2:] == ["100", "the cause"]


def test_interrupted_build_is_made_again(builder: ProcessEnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(folder: Path, *, with_pip: bool, symlinks: bool) -> None:
        _bare_venv(folder, with_pip=with_pip, symlinks=symlinks)
        (folder / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(venv, "create", dying)
    with pytest.raises(KeyboardInterrupt):
        _built(builder, _source())
    monkeypatch.setattr(venv, "create", _bare_venv)
    found = _built(builder, _source())
    assert found.status is BuildStatus.BUILT
    assert found.image_digest is not None
    assert not (Path(found.image_digest) / "half").exists()


def test_python_without_venv_is_a_status_that_says_so(
    builder: ProcessEnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_ensurepip(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(1, ["python", "-m", "ensurepip"], output=b"No module named ensurepip")

    monkeypatch.setattr(venv, "create", no_ensurepip)
    found = _built(builder, _source())
    assert found.status is BuildStatus.FAILED
    assert "python3-venv" in found.log_tail
    assert "No module named ensurepip" in found.log_tail


def test_full_disk_is_a_status(builder: ProcessEnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_builder, "FREE_BYTES_FLOOR", 1 << 62)
    assert _built(builder, _source()).status is BuildStatus.DISK_FULL


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (ImageSource("team/image"), "an image of its own"),
        (RecipeSource("golang", Recipe("go", 1, ("go build",)), NO_TREE), "template go"),
    ],
)
def test_what_needs_docker_says_so_and_what_to_do(
    builder: ProcessEnvironmentBuilder, source: EnvironmentSource, kind: str
) -> None:
    found = _built(builder, source)
    assert (found.status, found.image_digest) == (BuildStatus.FAILED, None)
    assert found.log_tail.startswith(f"{kind} needs Docker, and this is the process sandbox")
    assert "`template: packages`" in found.log_tail


def test_abandoned_build_ends_at_once(builder: ProcessEnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venv, "create", _bare_venv)
    source = _source(setup=("touch begun; exec sleep 50",))
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(_built, builder, source)
        while not list(builder._folder.glob("*/begun")):
            assert not building.done()
        builder.abandon()
        assert building.result(20).status is BuildStatus.FAILED


def test_two_builds_of_one_environment_do_not_meet(
    builder: ProcessEnvironmentBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venv, "create", _bare_venv)
    log = tmp_path / "log"
    source = _source(setup=(f"echo begin >> {log}; sleep 0.3; echo end >> {log}",))
    other = ProcessEnvironmentBuilder(tmp_path / "environments")
    with ThreadPoolExecutor(2) as pool:
        found = [future.result() for future in [pool.submit(_built, each, source) for each in (builder, other)]]
    assert log.read_text().split() == ["begin", "end"]
    assert found[0].image_digest == found[1].image_digest


def test_setup_finds_the_environment_first(builder: ProcessEnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venv, "create", _bare_venv)
    found = _built(builder, _source(setup=("command -v python > which",)))
    assert found.image_digest is not None
    folder = Path(builder.locate(found.image_digest))
    assert (folder / "which").read_text().strip() == os.fspath(folder / "bin" / "python")
