"""Environments as a stage: who shares one, what is built again, and what a build that failed costs."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evalpipe.environments import (
    TEMPLATES,
    BaseMissing,
    BuildStatus,
    BuiltEnvironment,
    EnvironmentSource,
    NoRecipe,
    PlannedBuild,
    Project,
    Recipe,
    RecipeSource,
    SpareEnvironment,
    build_key,
)
from evalpipe.lake import Row
from evalpipe.sandbox import EngineUnavailable, Interrupted
from evalpipe.stages.bench import Advance
from evalpipe.stages.images import EnvironmentNotReady, build_images, count_images, environment_of, images_of
from evalpipe.stages.judging import judge_candidates
from evalpipe.stages.mining import mine_repository
from evalpipe.stages.validating import ValidationPass, is_validated
from evalpipe_tests.history.builder import Builder, File, git
from evalpipe_tests.stages.conftest import kept
from evalpipe_tests.stages.workspaces import TestBench, lay_workspace

pytestmark = pytest.mark.slow

NOT_RELEASED = "error: No solution found when resolving dependencies"


@dataclass
class PinsTemplate:
    """What `pins.txt` says decides the environment, and the day with it where it says `dated`."""

    name: str = "python"
    projects: list[Project] = field(default_factory=list)

    def recipe(self, project: Project) -> Recipe:
        self.projects.append(project)
        if b"pins.txt" not in project.tree.paths:
            raise NoRecipe("there is no pins.txt: write one")
        day = project.day.isoformat() if b"dated" in project.tree.read(b"pins.txt") else ""
        return Recipe("python", 1, steps=(f"install {day}",), decided_by=(b"pins.txt",))


class PinsBuilder:
    """Builds what its test says: by default everything; by what the tree or the day is, with a status and a log."""

    def __init__(self) -> None:
        self.fails: dict[str, tuple[BuildStatus, str]] = {}
        self.built: list[tuple[bytes, str]] = []
        self.gone: set[str] = set()
        self.bases_missing = False
        self.at_once = 2

    def plan(self, source: EnvironmentSource) -> PlannedBuild:
        if self.bases_missing:
            raise BaseMissing("pull python")
        return PlannedBuild(source, build_key(source, "process", "base"), "base")

    def build(self, planned: PlannedBuild) -> BuiltEnvironment:
        source = planned.source
        assert isinstance(source, RecipeSource)
        files = {entry.path: entry.data for entry in source.tree.files()}
        self.built.append((files[b"clock.py"], source.recipe.steps[0]))
        for text, (status, log) in self.fails.items():
            if text in source.recipe.steps[0] or text.encode() in files[b"pins.txt"]:
                return BuiltEnvironment(status, None, log, 0.1)
        return BuiltEnvironment(BuildStatus.BUILT, f"image:{planned.build_key}", "", 0.1, ("pins==1",))

    def spare(self, needed: Collection[str], before: dt.datetime) -> Iterable[SpareEnvironment]:
        return ()

    def abandon(self) -> None:
        """Its builds take no time."""

    def locate(self, image_digest: str) -> str:
        return image_digest

    def exists(self, image_digest: str) -> bool:
        return image_digest.startswith("image:") and image_digest not in self.gone


class PinsBench(TestBench):
    """A bench whose builder is a PinsBuilder."""

    pins: PinsBuilder

    @property
    def builder(self) -> PinsBuilder:
        return self.pins


HISTORY: list[dict[bytes, File]] = [
    {b"clock.py": b"0", b"pins.txt": b"a", b"test_0.py": b"0"},
    {b"clock.py": b"1", b"test_1.py": b"1"},
    {b"clock.py": b"2", b"test_2.py": b"2"},
    {b"clock.py": b"3", b"test_3.py": b"3", b"pins.txt": b"b dated"},
    {b"clock.py": b"4", b"test_4.py": b"4"},
    {b"clock.py": b"5", b"test_5.py": b"5", b"pins.txt": None},
    {b"clock.py": b"6", b"test_6.py": b"6"},
]
"""Bases of the candidates 1 to 6: pins a, a, a, b, b, none. Merged on the 15th of November 2023, an hour apart."""


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> PinsTemplate:
    template = PinsTemplate()
    monkeypatch.setitem(TEMPLATES, "python", template)
    return template


@pytest.fixture
def bench(tmp_path: Path, template: PinsTemplate) -> PinsBench:
    root = tmp_path / "workspace"
    lay_workspace(root)
    (root / "data/repos/clock.yaml").write_text("source: pins.git\nrunner:\n  name: pytest\n")
    builder = Builder(root / "pins.git")
    for number, files in enumerate(HISTORY):
        commit = builder.commit(files, f"Change (#{number})")
        if number == 2:
            git(builder.path, "tag", "v1.4", commit)
    bench = PinsBench(root, tmp_path / "environment")
    bench.pins = PinsBuilder()
    mine_repository(bench, bench.repository)
    assert [row["number"] for row in kept(bench)] == [1, 2, 3, 4, 5, 6]
    return bench


def numbers(bench: TestBench, row: Row) -> list[int]:
    found = {str(candidate["candidate_id"]): candidate["number"] for candidate in kept(bench)}
    return [int(str(found[candidate_id])) for candidate_id in row["candidates"]]


def test_candidates_of_one_key_share_an_image_of_the_oldest_base(bench: PinsBench, template: PinsTemplate) -> None:
    rows = build_images(bench, bench.repository)
    assert [(row["status"], numbers(bench, row)) for row in rows] == [
        ("built", [1, 2, 3]),
        ("built", [4, 5]),
        ("no_recipe", [6]),
    ]
    assert sorted(bench.pins.built) == [(b"0", "install "), (b"3", "install 2023-11-01")]
    assert rows[0]["base_commit"] == kept(bench)[0]["parent"]
    assert (rows[0]["packages"], rows[0]["day"]) == (["pins==1"], "2023-11-01")
    assert (rows[2]["log_tail"], rows[2]["image_digest"]) == ("there is no pins.txt: write one", None)
    assert {project.day for project in template.projects} == {dt.date(2023, 11, 1), dt.date(2023, 11, 15)}
    by_commit = {project.tree.commit: project.version for project in template.projects}  # type: ignore[attr-defined]
    assert [by_commit[str(candidate["parent"])] for candidate in kept(bench)] == [
        None,
        None,
        "1.4",
        "1.4",
        "1.4",
        "1.4",
    ]
    assert bench.lake.rows("task_images", "clock") == rows
    assert str(count_images(rows[:2])) == "images: 2 for 5 candidates"


def test_what_is_built_is_not_built_again(bench: PinsBench) -> None:
    first = build_images(bench, bench.repository)
    built = len(bench.pins.built)
    second = build_images(bench, bench.repository)
    assert len(bench.pins.built) == built
    assert [row["built_at"] for row in second[:2]] == [row["built_at"] for row in first[:2]]
    bench.pins.gone.add(first[1]["image_digest"])
    build_images(bench, bench.repository)
    assert len(bench.pins.built) == built + 1


def test_only_what_the_newest_need_is_built_and_rows_of_others_stay(bench: PinsBench) -> None:
    (row, none) = build_images(bench, bench.repository, newest=3)
    assert (numbers(bench, row), numbers(bench, none)) == ([4, 5], [6])
    assert len(bench.pins.built) == 1
    rows = build_images(bench, bench.repository, newest=4)
    assert sorted(numbers(bench, row) for row in rows) == [[3], [4, 5], [6]]
    rows = build_images(bench, bench.repository, newest=1)
    assert sorted(numbers(bench, row) for row in rows) == [[3], [4, 5], [6]]
    assert len(bench.pins.built) == 2
    # A row goes with the last kept candidate that it serves.
    bench.lake.write("candidate_commits", [dict(row, reason="no_test_change") for row in kept(bench)[:5]], "clock")
    assert build_images(bench, bench.repository, newest=1) == []


def test_failed_build_costs_its_candidates_and_no_other(bench: PinsBench) -> None:
    bench.pins.fails["b dated"] = (BuildStatus.FAILED, "gcc: not found")
    rows = build_images(bench, bench.repository)
    assert [(row["status"], numbers(bench, row)) for row in rows] == [
        ("built", [1, 2, 3]),
        ("failed", [4, 5]),
        ("no_recipe", [6]),
    ]
    assert str(count_images(rows)) == "images: 1 for 3 candidates; failed builds: 2, which cost 3"
    first, *_, fourth, _, sixth = [str(row["candidate_id"]) for row in kept(bench)]
    assert environment_of(bench, "clock", first)["image_digest"] == rows[0]["image_digest"]
    with pytest.raises(EnvironmentNotReady, match=r"not built \(failed\):\ngcc: not found"):
        environment_of(bench, "clock", fourth)
    judged = {row["candidate_id"]: row for row in judge_candidates(bench, bench.repository)}
    assert (judged[first]["validation_class"], judged[first]["image_digest"]) == ("pending", rows[0]["image_digest"])
    assert (judged[fourth]["validation_class"], judged[fourth]["evidence"]) == ("environment_failed", "gcc: not found")
    assert judged[sixth]["evidence"] == "there is no pins.txt: write one"
    assert not is_validated(bench, bench.repository, kept(bench)[3], ValidationPass.FIRST)


@pytest.mark.parametrize("status", [BuildStatus.FAILED, BuildStatus.TIMEOUT, BuildStatus.LEAKS_PROJECT])
def test_what_would_fail_again_is_tried_again_on_request_only(bench: PinsBench, status: BuildStatus) -> None:
    bench.pins.fails["b dated"] = (status, "gcc: not found")
    before = build_images(bench, bench.repository)
    tried = len(bench.pins.built)
    bench.pins.fails.clear()
    assert build_images(bench, bench.repository)[:2] == before[:2]
    assert len(bench.pins.built) == tried
    # What the team changes in the configuration of the environment is part of the key.
    changed = bench.repository.environment.model_copy(update={"packages": ("gcc",)})
    rows = build_images(bench, bench.repository.model_copy(update={"environment": changed}), newest=2)
    assert [row["status"] for row in rows if 5 in numbers(bench, row)] == ["built"]
    bench.lake.write("task_images", before, "clock")
    retried = build_images(bench, bench.repository, retry_failed=True)
    assert [row["status"] for row in retried] == ["built", "built", "no_recipe"]


@pytest.mark.parametrize("status", [BuildStatus.UNREACHABLE, BuildStatus.DISK_FULL])
def test_what_the_network_or_the_disk_failed_is_tried_again(bench: PinsBench, status: BuildStatus) -> None:
    bench.pins.fails["b dated"] = (status, "no route")
    build_images(bench, bench.repository)
    bench.pins.fails.clear()
    assert [row["status"] for row in build_images(bench, bench.repository)] == ["built", "built", "no_recipe"]


def test_what_had_no_release_on_either_day_is_not_tried_again(bench: PinsBench) -> None:
    bench.pins.fails["2023-11"] = (BuildStatus.UNRELEASED, NOT_RELEASED)
    before = {row["build_key"]: row["status"] for row in build_images(bench, bench.repository)}
    tried = len(bench.pins.built)
    assert {row["build_key"]: row["status"] for row in build_images(bench, bench.repository)} == before
    assert len(bench.pins.built) == tried


def test_what_had_no_release_by_the_month_is_tried_on_the_day_itself_and_then_kept(bench: PinsBench) -> None:
    bench.pins.fails["2023-11-01"] = (BuildStatus.UNRELEASED, NOT_RELEASED)
    rows = build_images(bench, bench.repository)
    late = next(row for row in rows if row["day"] == "2023-11-15")
    assert (late["status"], numbers(bench, late)) == ("built", [4, 5])
    assert "unreleased" not in [row["status"] for row in rows]
    built = len(bench.pins.built)
    fourth = str(kept(bench)[3]["candidate_id"])
    before = images_of(bench, "clock")[fourth]
    build_images(bench, bench.repository)
    assert images_of(bench, "clock")[fourth] == before == late
    assert len(bench.pins.built) == built == 3


def test_what_had_no_release_on_the_day_either_is_told_with_the_last_log(bench: PinsBench) -> None:
    bench.pins.fails["2023-11-01"] = (BuildStatus.UNRELEASED, NOT_RELEASED)
    bench.pins.fails["2023-11-15"] = (BuildStatus.UNRELEASED, f"{NOT_RELEASED} by then")
    rows = build_images(bench, bench.repository)
    (failed,) = [row for row in rows if row["status"] == "unreleased"]
    assert (failed["log_tail"], numbers(bench, failed)) == (f"{NOT_RELEASED} by then", [4, 5])


def test_failure_that_no_day_decides_is_not_tried_twice(bench: PinsBench) -> None:
    bench.pins.fails["install "] = (BuildStatus.UNRELEASED, NOT_RELEASED)
    build_images(bench, bench.repository, newest=6)
    assert [step for _, step in bench.pins.built].count("install ") == 1


def test_missing_base_is_one_row_with_what_to_do(bench: PinsBench) -> None:
    bench.pins.bases_missing = True
    rows = build_images(bench, bench.repository)
    assert [(row["status"], row["log_tail"]) for row in rows] == [
        ("base_missing", "pull python"),
        ("no_recipe", "there is no pins.txt: write one"),
    ]


def test_dead_engine_ends_the_stage_and_keeps_the_rows(bench: PinsBench, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build_images(bench, bench.repository, newest=2)

    def dead(planned: PlannedBuild) -> BuiltEnvironment:
        raise EngineUnavailable("no engine answers")

    monkeypatch.setattr(bench.pins, "build", dead)
    with pytest.raises(EngineUnavailable):
        build_images(bench, bench.repository)
    assert bench.lake.rows("task_images", "clock") == before


def test_own_dockerfile_must_be_there_and_its_folder_small(bench: PinsBench) -> None:
    bench.rewrite(
        "data/repos/clock.yaml", "runner", "environment: {template: dockerfile, dockerfile: own/Dockerfile}\nrunner"
    )
    (row,) = build_images(bench, bench.repository)
    assert row["status"] == "no_recipe"
    assert "own/Dockerfile" in row["log_tail"]


def test_images_of_rows_and_of_frozen_sets_are_needed(frozen: TestBench) -> None:
    environment = str(frozen.environment)
    assert frozen.needed_images() == {environment}
    rows = frozen.lake.rows("task_images", "clock")
    frozen.lake.write(
        "task_images", [dict(rows[0], image_digest="sha256:new"), dict(rows[0], image_digest=None)], "clock"
    )
    assert frozen.needed_images() == {"sha256:new", environment}
    next((frozen.workspace.task_sets_dir / "q" / "tasks").iterdir()).write_text("{")
    assert frozen.needed_images() is None


def test_interrupt_ends_the_builds_that_run_and_begins_no_other(
    bench: PinsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build_images(bench, bench.repository)
    second = before[1]["image_digest"]
    bench.pins.gone = {before[0]["image_digest"], second}
    begun, ended = threading.Event(), threading.Event()
    build = bench.pins.build

    def slow(planned: PlannedBuild) -> BuiltEnvironment:
        found = build(planned)
        if found.image_digest == second:
            begun.set()
            assert ended.wait(20)
            raise Interrupted("ended")
        assert begun.wait(20)
        return found

    @contextmanager
    def interrupting(label: str, steps: int) -> Iterator[Advance]:
        def advance(steps: int = 1, note: str = "") -> None:
            raise KeyboardInterrupt

        yield advance

    monkeypatch.setattr(bench.pins, "build", slow)
    monkeypatch.setattr(bench.pins, "abandon", ended.set)
    bench.progress = interrupting
    with pytest.raises(KeyboardInterrupt):
        build_images(bench, bench.repository)
    assert ended.is_set()
    assert bench.lake.rows("task_images", "clock") == before
