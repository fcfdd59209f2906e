"""Bad input through the command line: a text that says what to do, an exit code, and earlier results intact."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalpipe.lake import write_atomically
from evalpipe.tasks import TaskWithPatches, freeze, load_task_set
from evalpipe_tests.history.builder import Builder, git
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import Finished, TinyWorkspace

pytestmark = pytest.mark.slow

Copied = Callable[[Walk], TinyWorkspace]


def _lake(tiny: TinyWorkspace) -> dict[str, str]:
    """Every table of the lake by its content."""
    return {
        str(path.relative_to(tiny.lake)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tiny.lake.rglob("*.parquet")
    }


def _without_probes(lake: dict[str, str]) -> dict[str, str]:
    return {path: content for path, content in lake.items() if not path.startswith("probes/")}


def _refused(done: Finished, code: int, *said: str) -> None:
    assert (done.code, done.out) == (code, ""), done.err
    for part in said:
        assert part in done.err
    assert "Traceback" not in done.err
    assert "dagster" not in done.err.lower()


def _source(tiny: TinyWorkspace, source: str) -> None:
    file = tiny.root / "data/repos/shop.yaml"
    file.write_text(file.read_text().replace("source: source.git", f"source: {source}"))


def test_a_folder_that_is_no_repository(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    before = _lake(tiny)
    (tiny.root / "folder").mkdir()
    _source(tiny, "folder")
    _refused(tiny.call("mine", "--json"), 1, "folder", "not a git repository")
    assert _lake(tiny) == before


def test_a_place_that_does_not_exist(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    _source(tiny, "nowhere.git")
    _refused(tiny.call("mine"), 1, "nowhere.git")


def test_an_empty_repository(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    before = _lake(tiny)
    git(tiny.root, "init", "--quiet", "--bare", "empty.git")
    _source(tiny, "empty.git")
    _refused(tiny.call("mine"), 1, "empty.git")
    assert _lake(tiny) == before


def test_a_shallow_clone(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    before = _lake(tiny)
    git(tiny.root, "clone", "--quiet", "--depth", "1", f"file://{tiny.root}/source.git", "shallow")
    _source(tiny, "shallow")
    shutil.rmtree(tiny.lake / "repositories")  # a mirror with the whole history would need nothing of the source
    _refused(tiny.call("mine"), 1, "shallow", "fetch --unshallow")
    assert _lake(tiny) == before


def test_a_mainline_that_is_missing(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    before = _lake(tiny)
    tiny.write("data/repos/shop.yaml", (tiny.root / "data/repos/shop.yaml").read_text() + "mainline: mian\n")
    _refused(tiny.call("mine"), 1, "mian", "main")
    assert _lake(tiny) == before


def test_a_history_without_candidates(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    Builder(tiny.root / "words.git").commit({b"README.md": b"words\n"}, "Words")
    _source(tiny, "words.git")
    done = tiny.call("mine", "--json")
    assert done.code == 1
    assert done.json()["funnel"] == {"root": 1}
    assert "no candidates in shop" in done.err
    assert "data/repos/shop.yaml" in done.err
    for command in ("validate", "mine"):
        assert tiny.call(command).code in (0, 1)
    _refused(tiny.call("freeze", "none"), 1, "no candidate is valid yet")


def test_one_bad_repository_costs_no_other(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    for name in ("a-first", "z-last"):
        file = (tiny.root / "data/repos/shop.yaml").read_text().replace("source.git", "nowhere.git")
        tiny.write(f"data/repos/{name}.yaml", file)
    (tiny.lake / "candidate_commits/shop.parquet").unlink()
    _refused(tiny.call("mine"), 1, "nowhere.git")
    assert (tiny.lake / "candidate_commits/shop.parquet").exists()


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("repos/shop.yaml", "source: x\nrunner:\n  name: nose\n", ("shop.yaml:3", "runner.name", "pytest")),
        ("repos/shop.yaml", "source: [x\n", ("shop.yaml:",)),
        ("repos/shop.yaml", "source: x\n", ("shop.yaml", "runner")),
        ("repos/shop.yaml", "source: x\nrunner: {name: pytest}\nmainlin: m\n", ("shop.yaml:3", "mainlin", "mainline")),
    ],
)
def test_a_broken_repository_file_is_named_by_line_and_field(
    file: str, text: str, said: tuple[str, ...], copied: Copied, frozen: Walk
) -> None:
    tiny = copied(frozen)
    before = _lake(tiny)
    tiny.write(f"data/{file}", text)
    for arguments in (["mine", "--json"], ["validate", "--json"], ["freeze", "new"]):
        _refused(tiny.call(*arguments), 2, *said)
    assert tiny.call("doctor").code == 1
    assert tiny.succeed("status", "--json").json()["next_steps"][0] == "evalpipe doctor"
    assert _lake(tiny) == before


def test_a_broken_agent_or_sweep_is_named_and_the_rest_goes_on(copied: Copied, finished: Walk) -> None:
    tiny = copied(finished)
    before = _lake(tiny)
    tiny.write("data/agents/half.yaml", "adapter: scripted\n")
    _refused(tiny.call("run", "small"), 2, "data/sweeps/small.yaml:2", "half", "data/agents/half.yaml")
    tiny.write("data/sweeps/small.yaml", "task_set: tiny\nagents: [empty]\nsamples: none\ndecision: d\n")
    _refused(tiny.call("report", "small", "--json"), 2, "data/sweeps/small.yaml:3", "samples")
    tiny.succeed("mine")
    assert _lake(tiny) == before


def test_a_script_that_is_damaged_costs_its_agent_alone(copied: Copied, begun: Walk) -> None:
    tiny = copied(begun)
    tiny.write("data/half/script.json", '{"patches": {"2": ["gone.patch"]}}')
    _refused(tiny.call("run", "small", "--agent", "half", "--agent", "empty"), 1, "gone.patch")
    (sweep,) = tiny.succeed("status", "--json").json()["sweeps"] or [None]
    assert {agent["name"]: agent["attempted"] for agent in sweep["agents"]}["empty"] == 4


def test_a_damaged_task_set_is_named_before_anything_runs(copied: Copied, begun: Walk) -> None:
    tiny = copied(begun)
    before = _lake(tiny)
    (task, *_) = (tiny.root / "data/task_sets/tiny/tasks").iterdir()
    task.write_text(task.read_text().replace('"coding_agent": false', '"coding_agent": true'))
    for command in ("run", "grade", "report"):
        _refused(tiny.call(command, "small"), 1, task.name, "changed after freezing")
    assert _lake(tiny) == before


def test_a_damaged_table_is_named(copied: Copied, finished: Walk) -> None:
    tiny = copied(finished)
    (file, *_) = (tiny.lake / "graded_results").rglob("*.parquet")
    file.write_bytes(b"PAR1")
    _refused(tiny.call("report", "small"), 1, str(file.name), "delete it")
    _refused(tiny.call("status"), 1, str(file.name), "delete it")


def test_tasks_of_another_sandbox_are_refused_and_hide_nothing(copied: Copied, finished: Walk) -> None:
    """What was run is still reported after an attempt to run without the engine that it was validated with."""
    tiny = copied(finished)
    folder = tiny.root / "data/task_sets/tiny"
    before = {path: path.read_bytes() for path in (tiny.lake / "manifests").rglob("*.json")}
    _freeze_as_docker(tiny, folder)
    done = tiny.call("run", "small", "--agent", "empty")
    assert done.code == 1
    assert "sandbox" in done.err
    assert {path: path.read_bytes() for path in (tiny.lake / "manifests").rglob("*.json")} == before


def _freeze_as_docker(tiny: TinyWorkspace, folder: Path) -> None:
    loaded = load_task_set(folder)
    tasks = []
    for name, task in loaded.tasks.items():
        environment = task.environment.model_copy(update={"sandbox": "docker", "image_digest": "sha256:0"})
        moved = task.model_copy(update={"environment": environment})
        tasks.append(TaskWithPatches(moved, loaded.gold_patch(name), loaded.test_patch(name)))
    shutil.rmtree(folder)
    freeze(folder, tasks, None, provisional=True, write=write_atomically)


def test_docker_results_are_not_replaced_without_an_engine(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    images = tiny.lake / "task_images/shop.parquet"
    table = pq.read_table(images)
    column = table.schema.get_field_index("sandbox")
    pq.write_table(table.set_column(column, table.schema.field(column), pa.array(["docker"])), images)
    before = _lake(tiny)
    nowhere = {"EVALPIPE_SANDBOX": "auto", "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    answer = tiny.call("validate", "--same-day", "--json", variables=nowhere)
    _refused(answer, 1, "no Docker engine answers", "start it")
    assert _lake(tiny) == before


@contextmanager
def _small_disk(place: Path, kib: int) -> Iterator[None]:
    """A file system of so many KiB at `place`, with what was there."""
    kept = place.with_name(f"{place.name}-kept")
    place.rename(kept)
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        place.rmdir()
        kept.rename(place)
        pytest.skip(f"a full disk cannot be tried here: {mounted.stderr.strip()}")
    try:
        shutil.copytree(kept, place, dirs_exist_ok=True, symlinks=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()
        kept.rename(place)


def test_a_full_disk_is_named_and_room_lets_it_go_on(copied: Copied, mined: Walk) -> None:
    """The workspace's data is on the small disk: the lake and Dagster's own database, whichever fills first."""
    tiny = copied(mined)
    data = tiny.root / "data"
    used = sum(path.stat().st_size for path in data.rglob("*") if path.is_file()) // 1024
    with _small_disk(data, used + 32 * 1024):
        before = _lake(tiny)
        filler = data / "filler"
        with filler.open("wb") as file:
            file.write(bytes(max(shutil.disk_usage(data).free - 8 * 1024, 0)))
        _refused(tiny.run("mine"), 1, "MiB are free", "free some space")
        assert _lake(tiny) == before
        assert not list(data.rglob("*.tmp"))
        filler.unlink()
        tiny.succeed("mine")
        assert _lake(tiny) == before


def test_a_disk_that_fills_in_the_middle_of_a_run(copied: Copied, mined: Walk) -> None:
    """Past the look at the free space, the lake's write or Dagster's is the first that finds none."""
    tiny = copied(mined)
    data = tiny.root / "data"
    used = sum(path.stat().st_size for path in data.rglob("*") if path.is_file()) // 1024
    code = (
        "import pathlib, shutil, evalpipe.stages.mining as mining\n"
        "look = mining.look_at_history\n"
        "def fill(bench, config):\n"
        "    found = look(bench, config)\n"
        "    data = bench.workspace.data\n"
        "    (data / 'filler').write_bytes(bytes(max(shutil.disk_usage(data).free, 0)))\n"
        "    return found\n"
        "mining.look_at_history = fill\n"
        "from evalpipe.cli import main\n"
        "main()\n"
    )
    with _small_disk(data, used + 32 * 1024):
        before = _lake(tiny)
        command = [sys.executable, "-c", code, "mine"]
        full = subprocess.run(
            command, cwd=tiny.root, env=tiny.environment(), capture_output=True, text=True, check=False
        )
        assert (full.returncode, full.stdout) == (1, ""), full.stderr
        assert "free some space" in full.stderr, full.stderr
        assert "Traceback" not in full.stderr
        assert _lake(tiny) == before
        assert not list(tiny.lake.rglob("*.tmp"))
        (data / "filler").unlink()
        tiny.succeed("mine")
        assert _lake(tiny) == before


def test_attempts_do_not_begin_on_a_disk_that_is_nearly_full(copied: Copied, begun: Walk) -> None:
    tiny = copied(begun)
    started = tiny.gate.begun()
    with _small_disk(tiny.lake, 64 * 1024):
        before = _lake(tiny)
        done = tiny.call("run", "small", "--agent", "reference")
        _refused(done, 1, "MiB are free", "not begun")
        # The sandbox is looked at before the room for an attempt is.
        assert _without_probes(_lake(tiny)) == _without_probes(before)
    assert tiny.gate.begun() == started
    tiny.succeed("run", "small", "--agent", "reference")


def test_this_runs_as_root_in_ci() -> None:
    if os.environ.get("EVALPIPE_REQUIRE_DOCKER") == "1":
        assert os.geteuid() == 0, "CI is root, so that the tests with a full disk are not skipped"
