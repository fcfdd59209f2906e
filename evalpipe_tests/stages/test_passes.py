"""A candidate's passes: what is on disk after each run, the comparison with the network, the stress pass."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from evalpipe.sandbox import Box, Capacity, DockerSandbox, EngineFault, Interrupted, Limits, Outcome, Room
from evalpipe.sandbox.process_box import ProcessBox
from evalpipe.stages.freezing import freeze_task_set
from evalpipe.stages.grading_rows import grade_patch
from evalpipe.stages.images import build_images
from evalpipe.stages.judging import judge_candidates
from evalpipe.stages.mining import mine_repository
from evalpipe.stages.suite_scope import ScopeCheck, check_scope
from evalpipe.stages.validating import (
    FirstPassMissing,
    ValidationPass,
    is_validated,
    stress_pass_due,
    validate_candidate,
)
from evalpipe.stages.validation_rows import summaries
from evalpipe.tasks import load_task_set
from evalpipe.validation.affected import in_whole_suite_sample
from evalpipe_tests.history.builder import Builder, File
from evalpipe_tests.stages.conftest import kept, validate_all
from evalpipe_tests.stages.workspaces import CountingSandbox, HostPython, TestBench, lay_workspace

FIRST, SECOND, STRESS = ValidationPass


def change_workspace(root: Path, files: dict[bytes, File], *, stress: bool = True) -> None:
    """A workspace whose repository has one candidate: `product.VALUE` is new, and `files` are the change's tests."""
    lay_workspace(root)
    config = root / "data/repos/clock.yaml"
    config.write_text(config.read_text().replace("stress: false", f"stress: {str(stress).lower()}"))
    builder = Builder(root / "one.git")
    builder.commit({b"product.py": b"", b"test_old.py": b"def test_old(): pass\n"}, "Start")
    builder.commit({b"product.py": b"VALUE = 1\n", **files}, "Give it a value (#1)")
    config.write_text(config.read_text().replace("source.git", "one.git"))


def ready(bench: TestBench) -> dict[str, Any]:
    """Mine and build; returns the only candidate."""
    mine_repository(bench, bench.repository)
    build_images(bench, bench.repository)
    (candidate,) = kept(bench)
    return dict(candidate)


def runs_of(bench: TestBench, candidate: Mapping[str, Any], validation_pass: ValidationPass) -> dict[str, Any]:
    """The summaries of a pass by the names of its runs."""
    rows = bench.lake.rows("validation_runs", candidate["candidate_id"], validation_pass)
    return {row["suite_run"]: row for row in summaries(rows)}


# Durable sides


class FailingSandbox(CountingSandbox):
    """Fails when a box for one of `failing` is opened, as an engine that is killed does."""

    failing: set[str]

    @contextmanager
    def open(
        self,
        environment: str,
        limits: Limits,
        labels: Mapping[str, str],
        *,
        network: bool = False,
        hostname: str | None = None,
        share: Path | None = None,
    ) -> Iterator[Box]:
        if labels.get("suite_run") in self.failing:
            raise EngineFault("the engine is gone")
        with super().open(environment, limits, labels, network=network, hostname=hostname, share=share) as box:
            yield box


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_side_that_ended_is_kept_when_the_other_is_lost(
    lost: str, tmp_path: Path, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "workspace"
    change_workspace(root, {b"test_new.py": b"import product\ndef test_new(): assert product.VALUE\n"})
    bench = TestBench(root, environment)
    candidate = ready(bench)
    failing = FailingSandbox(bench.instance, bench.workspace.state_dir)
    failing.failing = {lost}
    monkeypatch.setattr(bench, "sandbox", failing)
    with pytest.raises(EngineFault):
        validate_candidate(bench, bench.repository, candidate, FIRST, same_day=False, labels={})
    place = bench.lake.root / "suite_runs" / candidate["candidate_id"] / "first"
    other = "after" if lost == "before" else "before"
    assert [path.stem for path in place.iterdir()] == [other]
    assert not bench.lake.has("validation_runs", candidate["candidate_id"], "first")

    failing.failing, failing.opened = set(), []
    bench.days_later(1)
    assert validate_candidate(bench, bench.repository, candidate, FIRST, same_day=False, labels={})
    assert [labels["suite_run"] for labels in failing.opened] == [lost]
    assert not place.exists()
    runs = runs_of(bench, candidate, FIRST)
    assert (runs[lost]["started_at"] - runs[other]["started_at"]).days == 1
    # The day of a pass is the last on which any of it ran.
    judge_candidates(bench, bench.repository)
    assert bench.lake.rows("validated_tasks", "clock")[0]["validated_on"] == ["2026-05-02"]


@pytest.mark.slow
def test_a_side_of_other_settings_is_not_taken_for_the_present_one(
    tmp_path: Path, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "workspace"
    change_workspace(root, {b"test_new.py": b"import product\ndef test_new(): assert product.VALUE\n"})
    bench = TestBench(root, environment)
    candidate = ready(bench)
    failing = FailingSandbox(bench.instance, bench.workspace.state_dir)
    failing.failing = {"after"}
    monkeypatch.setattr(bench, "sandbox", failing)
    with pytest.raises(EngineFault):
        validate_candidate(bench, bench.repository, candidate, FIRST, same_day=False, labels={})
    failing.failing, failing.opened = set(), []
    bench.rewrite("data/repos/clock.yaml", "timeout_s: 60", "timeout_s: 61")
    assert validate_candidate(bench, bench.repository, candidate, FIRST, same_day=False, labels={})
    assert len(failing.opened) == 2


def test_after_an_interrupt_no_other_run_of_the_pass_begins(
    tmp_path: Path, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "workspace"
    change_workspace(root, {b"test_new.py": b"import product\ndef test_new(): assert product.VALUE\n"})
    bench = TestBench(root, environment)
    candidate = ready(bench)
    monkeypatch.setattr(bench, "room", Room(tmp_path / "room", Capacity(1, 1024**3)))
    begun: list[str] = []

    def interrupted(box: ProcessBox, *arguments: object, **more: object) -> Outcome:
        begun.append(box.labels["suite_run"])
        raise Interrupted("killed")

    monkeypatch.setattr(ProcessBox, "run", interrupted)
    with pytest.raises(Interrupted):
        validate_candidate(bench, bench.repository, candidate, FIRST, same_day=False, labels={})
    assert len(begun) == 1


# The comparison with the network


@pytest.mark.slow
def test_own_tests_that_fail_are_run_once_more_with_the_network(tmp_path: Path, environment: Path) -> None:
    root = tmp_path / "workspace"
    route = b"import socket\ndef test_route(): socket.socket(type=socket.SOCK_DGRAM).connect(('198.51.100.7', 9))\n"
    change_workspace(root, {b"test_new.py": route + b"def test_broken(): assert 0\n"})
    bench = TestBench(root, environment)
    if not bench.sandbox.cuts_network:
        pytest.skip("this kernel does not let the process sandbox cut the network")
    candidate = ready(bench)
    assert validate_candidate(bench, bench.repository, candidate, FIRST, same_day=False, labels={})
    assert sorted(labels["suite_run"] for labels in bench.sandbox.opened) == ["after", "before", "with_network"]
    assert runs_of(bench, candidate, FIRST)["with_network"]["conditions"] == ["with the network"]
    (row,) = judge_candidates(bench, bench.repository)
    assert row["validation_class"] == "needs_network"
    assert row["need_network"] == ("test_new.py::test_route",)
    # Nothing that fails after its own change is put under stress.
    assert not validate_candidate(bench, bench.repository, candidate, STRESS, same_day=False, labels={})
    assert is_validated(bench, bench.repository, candidate, STRESS)
    assert bench.boxes == 3


# The stress pass

FRAGILE = b"""
import os, platform, subprocess, time
import product

ORDER = []

def test_holds(): assert product.VALUE
def test_old_style(): assert time.monotonic() > 0
def test_time_bomb(): assert product.VALUE and time.time() < %d
def test_zone(): assert product.VALUE and time.localtime(0).tm_hour == 0
def test_host(): assert product.VALUE and platform.node() != "elsewhere"
def test_locale(): assert product.VALUE and subprocess.check_output(["locale", "charmap"]) == b"UTF-8\\n"
def test_order_1(): assert product.VALUE; ORDER.append(1)
def test_order_2(): assert product.VALUE and ORDER == [1]; ORDER.append(2)
def test_order_3(): assert product.VALUE and ORDER == [1, 2]; ORDER.append(3)
def test_order_4(): assert product.VALUE and ORDER == [1, 2, 3]; ORDER.append(4)
def test_order_5(): assert product.VALUE and ORDER == [1, 2, 3, 4]
"""


class DockerBench(TestBench):
    """The same bench with boxes in containers of the base image."""

    docker: DockerSandbox
    image: str

    @cached_property
    def sandbox(self) -> Any:
        return self.docker

    @cached_property
    def host_python(self) -> HostPython:
        stand_in = HostPython(self.environment)
        stand_in.locate = lambda image_digest: self.image  # type: ignore[method-assign]
        return stand_in


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "process"])
def fragile(request: pytest.FixtureRequest, tmp_path: Path, environment: Path) -> TestBench:
    """A bench on a change whose tests depend on much; `stress` has run for it after the first pass."""
    root = tmp_path / "workspace"
    change_workspace(root, {b"test_new.py": FRAGILE % (time.time() + 100 * 24 * 3600)})
    if request.param == "process":
        return TestBench(root, environment)
    bench = DockerBench(root, environment)
    bench.docker = request.getfixturevalue("docker_sandbox")
    bench.image = request.getfixturevalue("built_image")
    return bench


@pytest.mark.slow
def test_stress_finds_each_tests_cause(fragile: TestBench) -> None:
    in_docker = isinstance(fragile.sandbox, DockerSandbox)
    has_name = in_docker or "own process IDs" in fragile.sandbox.describe().isolation
    candidate = ready(fragile)
    config = fragile.repository
    with pytest.raises(FirstPassMissing):
        validate_candidate(fragile, config, candidate, STRESS, same_day=False, labels={})
    validate_all(fragile, FIRST)
    fragile.days_later(1)
    validate_all(fragile, SECOND)
    assert judge_candidates(fragile, config)[0]["evidence"].endswith("in both passes; the stress pass is due")

    assert not is_validated(fragile, config, candidate, STRESS)
    assert validate_all(fragile, STRESS) == 1
    assert is_validated(fragile, config, candidate, STRESS)
    runs = runs_of(fragile, candidate, STRESS)
    facts = next(iter(fragile.box_facts.values()))
    assert ("year_later" in runs) == ("clock_ahead" in runs) == bool(facts.faketime)
    assert in_docker <= bool(facts.faketime)
    assert {"stressed", "other_order", "other_locale", "other_time_zone"} <= runs.keys()
    if isinstance(fragile.sandbox, CountingSandbox):
        # Four for the passes, one that was looked into, and one for each run.
        boxes = fragile.boxes
        assert boxes == 4 + 1 + len(runs)
        assert validate_all(fragile, FIRST) == validate_all(fragile, SECOND) == validate_all(fragile, STRESS) == 0
        assert fragile.boxes == boxes

    (row,) = judge_candidates(fragile, config)
    assert row["validation_class"] == "valid"
    causes = {one["test_id"].partition("::test_")[2]: one["cause"] for one in row["quarantine_causes"]}
    # How many of the five in a row fall depends on where the shuffle puts them.
    in_a_row = {test: causes.pop(test) for test in list(causes) if test.startswith("order_")}
    assert set(in_a_row.values()) == {"order"}
    expected = {"zone": "time_zone", "locale": "locale"}
    expected |= {"host": "hostname"} if has_name else {}
    expected |= {"time_bomb": "clock"} if facts.faketime else {}
    assert causes == expected
    assert "test_new.py::test_holds" in row["fail_to_pass"]
    assert "test_new.py::test_zone" not in row["fail_to_pass"]
    assert ("clock not moved: no libfaketime in the image" in row["evidence"]) == (not facts.faketime)
    assert "under stress" in row["evidence"]

    freeze_task_set(fragile, "q", [config], provisional=False)
    (task,) = load_task_set(fragile.workspace.task_sets_dir / "q").tasks.values()
    assert "test_new.py::test_zone" in task.quarantined
    assert not set(task.quarantined) & {*task.fail_to_pass, *task.pass_to_pass}


@pytest.mark.slow
def test_a_stress_pass_that_changes_nothing_takes_two_runs_at_most(tmp_path: Path, environment: Path) -> None:
    root = tmp_path / "workspace"
    change_workspace(root, {b"test_new.py": b"import product\ndef test_new(): assert product.VALUE\n"})
    bench = TestBench(root, environment)
    candidate = ready(bench)
    validate_all(bench, FIRST)
    assert stress_pass_due(bench, bench.repository, candidate["candidate_id"])
    assert validate_all(bench, STRESS) == 1
    assert not stress_pass_due(bench, bench.repository, candidate["candidate_id"])
    runs = runs_of(bench, candidate, STRESS)
    assert {"stressed"} <= runs.keys() <= {"stressed", "year_later"}
    assert "shuffled order" in runs["stressed"]["conditions"]
    (row,) = judge_candidates(bench, bench.repository)
    assert row["evidence"].endswith("in the first pass; a second is due")


@pytest.mark.slow
def test_a_repository_that_wants_no_stress_gets_none(tmp_path: Path, environment: Path) -> None:
    root = tmp_path / "workspace"
    change_workspace(root, {b"test_new.py": b"import product\ndef test_new(): assert product.VALUE\n"}, stress=False)
    bench = TestBench(root, environment)
    ready(bench)
    validate_all(bench, FIRST)
    assert validate_all(bench, STRESS) == 0
    assert validate_all(bench, SECOND, same_day=True) == 1
    (row,) = judge_candidates(bench, bench.repository)
    assert row["validation_class"] == "valid"


# The scope


@pytest.mark.slow
def test_the_affected_suite_is_run_recorded_frozen_and_graded(tmp_path: Path, environment: Path) -> None:
    root = tmp_path / "workspace"
    change_workspace(
        root, {b"tests/test_new.py": b"import product\ndef test_new(): assert product.VALUE\n"}, stress=False
    )
    bench = TestBench(root, environment)
    bench.rewrite("data/repos/clock.yaml", "stress: false", "stress: false\n  suite: affected")
    candidate = ready(bench)
    assert not in_whole_suite_sample(candidate["candidate_id"])
    validate_all(bench, FIRST)
    validate_all(bench, SECOND, same_day=True)
    for run in runs_of(bench, candidate, FIRST).values():
        assert (run["suite"], run["suite_files"]) == ("affected", [b"tests/test_new.py"])
    (row,) = judge_candidates(bench, bench.repository)
    assert (row["fail_to_pass"], row["pass_to_pass"]) == (("tests/test_new.py::test_new",), ())
    freeze_task_set(bench, "q", [bench.repository], provisional=True)
    loaded = load_task_set(bench.workspace.task_sets_dir / "q")
    (task,) = loaded.tasks.values()
    assert task.suite_files == ("tests/test_new.py",)
    graded = grade_patch(bench, task, loaded.gold_patch(task.task_id), {})
    assert graded["resolved"]


@pytest.mark.slow
def test_the_sample_of_whole_suites_is_told_as_such(
    tmp_path: Path, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "workspace"
    change_workspace(
        root, {b"tests/test_new.py": b"import product\ndef test_new(): assert product.VALUE\n"}, stress=False
    )
    bench = TestBench(root, environment)
    bench.rewrite("data/repos/clock.yaml", "stress: false", "stress: false\n  suite: affected")
    candidate = ready(bench)
    monkeypatch.setattr("evalpipe.stages.suite_scope.in_whole_suite_sample", lambda candidate_id: True)
    validate_all(bench, FIRST)
    for run in runs_of(bench, candidate, FIRST).values():
        assert (run["suite"], run["suite_files"]) == ("whole", None)
    validate_all(bench, SECOND, same_day=True)
    assert judge_candidates(bench, bench.repository)[0]["validation_class"] == "valid"
    assert check_scope(bench, bench.repository) == ScopeCheck(1, {})
    with monkeypatch.context() as patch:
        patch.setattr("evalpipe.stages.suite_scope.affected_test_files", lambda *_: (b"tests/test_other.py",))
        missed = {candidate["candidate_id"]: ["tests/test_new.py::test_new"]}
        assert check_scope(bench, bench.repository) == ScopeCheck(1, missed)
