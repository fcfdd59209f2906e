"""The demo repository is the same everywhere, and its expectations hold when its suite is really run."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from evalpipe.demo.build import STAMP_FILE, DemoBuildError, build_demo_repository
from evalpipe.demo.script import DemoScriptError, load_script
from evalpipe_tests.demo.expectations import (
    DEMO,
    ExpectedChange,
    agent_patches,
    expected_changes,
    expected_resolved,
    expected_tip,
)
from evalpipe_tests.demo.refresh_ids import refreshed
from evalpipe_tests.demo.trees import CUT_OFF, Run, Workbench, changed_files, git, is_test

CHANGES = expected_changes()
KEPT = [change for change in CHANGES if change.kept]
TASKS = {change.number: change for change in CHANGES if change.task_class == "valid"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    destination = tmp_path_factory.mktemp("demo") / "repository"
    build_demo_repository(DEMO, destination)
    return destination


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO, tmp_path / "source"))


def mainline(repository: Path) -> list[str]:
    return git(repository, "rev-list", "--first-parent", "--reverse", "main").decode().split()


def test_the_tip_is_the_same_on_every_machine(repository: Path) -> None:
    assert git(repository, "rev-parse", "HEAD").decode().strip() == expected_tip()
    assert git(repository, "symbolic-ref", "HEAD").decode().strip() == "refs/heads/main"


def test_no_configuration_of_the_user_changes_the_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Somebody\n[core]\n\tautocrlf = true\n\twhitespace = cr-at-eol\n[apply]\n\twhitespace = fix\n"
        "[commit]\n\tgpgsign = true\n[i18n]\n\tcommitEncoding = latin1\n[init]\n\tdefaultBranch = trunk\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    assert build_demo_repository(DEMO, tmp_path / "repository") == expected_tip()


def test_the_repository_is_sound_and_clean(repository: Path) -> None:
    assert git(repository, "fsck", "--full", "--strict", "--no-dangling") == b""
    assert git(repository, "status", "--porcelain") == b""


def test_the_expectations_name_every_mainline_change_in_order(repository: Path) -> None:
    assert [commit for change in CHANGES for commit in change.commits] == mainline(repository)
    assert refreshed(repository) == (DEMO / "expected.json").read_text(encoding="utf-8")


def test_the_history_is_that_of_a_team(repository: Path) -> None:
    rows = git(repository, "log", "--first-parent", "--format=%ae %as %s").decode().splitlines()
    assert len(rows) >= 30
    assert len({row.split()[0] for row in rows}) >= 4
    days = sorted(row.split()[1] for row in rows)
    assert "2026-01" < days[0] < "2026-03"
    assert "2026-09" < days[-1] < "2026-11"
    assert {change.shape for change in CHANGES} == {"direct", "squash", "merge", "rebase", "back_merge"}


def test_the_kept_changes_are_those_that_the_demo_promises() -> None:
    assert Counter(change.task_class for change in KEPT) == {
        "valid": 10,
        "compile_only": 4,
        "no_signal": 3,
        "flaky": 1,
        "needs_network": 1,
    }
    assert Counter(change.category for change in TASKS.values()) == {
        "single_file_repair": 5,
        "multi_file_feature": 4,
        "dependency_chore": 1,
    }
    assert all(1 <= len(change.fail_to_pass) <= 6 for change in TASKS.values())


def test_only_kept_changes_have_source_and_tests_unless_a_rule_rejects_them(repository: Path) -> None:
    for change in CHANGES[1:]:
        base = git(repository, "rev-parse", f"{change.commits[0]}^1").decode().strip()
        files = changed_files(repository, base, change.commit)
        both = any(is_test(path) for path in files) and any(
            path.endswith(".py") and not is_test(path) for path in files
        )
        assert both == (change.kept or change.reason in ("revert", "too_many_files")), change.subject
        assert (len(files) > 25) == (change.reason == "too_many_files"), change.subject


def test_the_revert_names_the_commit_that_it_reverts(repository: Path) -> None:
    cached = next(change for change in CHANGES if change.subject.startswith("Cache unit"))
    revert = next(change for change in CHANGES if change.reason == "revert")
    body = git(repository, "show", "-s", "--format=%b", revert.commit).decode()
    assert f"This reverts commit {cached.commit}." in body


def test_a_task_carries_every_kind_of_file(repository: Path) -> None:
    scanner = git(repository, "show", f"{TASKS[20].commit}:tests/data/scan-0412.bin")
    assert len(scanner) == 256
    export = git(repository, "show", f"{TASKS[16].commit}:tests/data/till export.csv")
    assert export.count(b"\r\n") == export.count(b"\n") == 4
    renames = git(repository, "diff", "-M", "--name-status", "-z", f"{TASKS[32].commit}^1", TASKS[32].commit)
    assert b"larder/data/nutrients.csv\0larder/data/nutrients per 100 g.csv\0" in renames


def test_issues_and_pull_requests_are_numbered_together_and_older_than_their_change(repository: Path) -> None:
    rows = [json.loads(line) for line in (DEMO / "issues.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    pull_requests = {row["number"]: row for row in rows if row["kind"] == "pull_request"}
    assert {change.number for change in CHANGES} - {None} <= pull_requests.keys()
    created = {row["number"]: datetime.fromisoformat(row["created_at"]) for row in rows}
    for change in CHANGES[1:]:
        if change.number is None:
            continue
        commits = git(repository, "log", "--format=%at", f"{change.commits[0]}^1..{change.commit}").decode().split()
        texts = [change.number, *(row["number"] for row in rows if row["closed_by"] == change.number)]
        for number in texts:
            assert created[number].timestamp() < min(map(int, commits)), (change.subject, number)


def test_building_again_does_nothing(repository: Path) -> None:
    marker = repository / "left-by-a-user.txt"
    marker.write_text("still here")
    assert build_demo_repository(DEMO, repository) == expected_tip()
    assert marker.exists()
    marker.unlink()


@pytest.mark.parametrize("damage", [lambda git_folder: (git_folder / STAMP_FILE).unlink(), shutil.rmtree])
@pytest.mark.slow
def test_a_half_built_repository_is_built_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    destination = tmp_path / "repository"
    build_demo_repository(DEMO, destination)
    damage(destination / ".git")
    assert build_demo_repository(DEMO, destination) == expected_tip()
    assert git(destination, "status", "--porcelain") == b""
    assert list(tmp_path.iterdir()) == [destination]


@pytest.mark.slow
def test_an_edited_history_is_built_anew(tmp_path: Path, source: Path) -> None:
    build_demo_repository(source, tmp_path / "repository")
    history = source / "history.toml"
    history.write_text(history.read_text("utf-8").replace("Tidy the labels", "Clean the labels"), "utf-8")
    tip = build_demo_repository(source, tmp_path / "repository")
    assert tip != expected_tip()
    assert git(tmp_path / "repository", "rev-parse", "main").decode().strip() == tip


def test_a_patch_that_does_not_apply_is_named_and_nothing_is_left(tmp_path: Path, source: Path) -> None:
    patch = next((source / "patches").glob("*-undated-lots.patch"))
    patch.write_bytes(patch.read_bytes().replace(b"date.min", b"date.never"))
    with pytest.raises(DemoBuildError, match=r"history\.toml, step 'undated-lots': git apply failed: .*stock\.py"):
        build_demo_repository(source, tmp_path / "repository")
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('do = "merge"', 'do = "rebase"', "do is one of commit, merge, back_merge, fast_forward, not 'rebase'"),
        ('key = "tins"', 'key = "root"', "step 'root': the key is used twice"),
        ('author = "jun"', 'author = "june"', "author and committer are among mara, tomas"),
        ("+09:00", "", "a date has an offset"),
        ('branch = "vulgar-fractions"', 'branch = "main"', "branch 'main' has no commit to merge"),
        ("patches/01-root.patch", "patches/01-rot.patch", "step 'root': patches/01-rot.patch is missing"),
        ("[[step]]", "[[steps]]", "has no [[step]]"),
        ("[people]", "[people", "history.toml: "),
    ],
)
def test_mistakes_in_the_history_are_explained(source: Path, old: str, new: str, complaint: str) -> None:
    history = source / "history.toml"
    history.write_text(history.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(DemoScriptError) as caught:
        load_script(source)
    assert complaint in str(caught.value)


class Sides:
    """Runs the sides of the kept changes, each once."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.repository = repository
        self.bench = Workbench(repository, folder)
        self.before = cache(self._before)
        self.after = cache(self._after)

    def base(self, change: ExpectedChange) -> str:
        return git(self.repository, "rev-parse", f"{change.commit}^1").decode().strip()

    def _before(self, change: ExpectedChange) -> Run:
        return self.bench.run_before(self.base(change), change.commit)

    def _after(self, change: ExpectedChange) -> Run:
        return self.bench.run_after(change.commit)


@pytest.fixture(scope="module")
def sides(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("sides")
    yield Sides(repository, folder)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("change", KEPT, ids=lambda change: f"{change.number}-{change.task_class}")
def test_a_kept_change_is_what_the_expectations_say(sides: Sides, change: ExpectedChange) -> None:
    before, after = sides.before(change), sides.after(change)
    fail_to_pass = before.having("failed") & after.having("passed")
    assert not after.not_collected
    assert bool(before.not_collected) == (change.task_class == "compile_only")
    if change.task_class == "valid":
        assert fail_to_pass == change.fail_to_pass
        assert before.having("failed") == change.fail_to_pass
        assert after.having("failed") == set()
    elif change.task_class == "compile_only":
        assert fail_to_pass == set()
        assert before.having("failed") == set()
        only_after = after.having("passed") - before.outcomes.keys()
        assert {test.partition("::")[0] for test in only_after} == before.not_collected
    elif change.task_class == "no_signal":
        assert before.outcomes == after.outcomes
        assert before.having("failed") == set()
    elif change.task_class == "flaky":
        again = sides.bench.run_after(change.commit)
        assert len(before.having("failed")) == 24
        assert before.having("failed") == before.outcomes.keys() - before.having("passed") - before.having("skipped")
        assert after.having("passed") != again.having("passed")
        assert after.having("failed") | again.having("failed") <= before.having("failed")
    else:
        assert change.task_class == "needs_network"
        if subprocess.run([*CUT_OFF, "true"], check=False, capture_output=True).returncode != 0:
            pytest.skip("this kernel does not let the network be cut")
        cut_off = sides.bench.run_after(change.commit, without_network=True)
        (asked,) = cut_off.having("failed")
        assert asked in before.having("failed")
        assert "unreachable" in cut_off.texts[asked]
        with socket.socket(type=socket.SOCK_DGRAM) as probe:
            if probe.connect_ex(("198.51.100.7", 9)) == 0:
                assert fail_to_pass == {asked}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "number"), [(agent, number) for agent, tasks in expected_resolved().items() for number in tasks]
)
def test_a_scripted_agent_solves_what_the_expectations_say(sides: Sides, agent: str, number: int) -> None:
    task = TASKS[number]
    patches = agent_patches(agent)[number]
    pass_to_pass = sides.before(task).having("passed") & sides.after(task).having("passed")
    resolved: dict[Path | None, bool] = {None: False}
    for patch in {patch for patch in patches if patch is not None}:
        passed = sides.bench.run_before(sides.base(task), task.commit, patch).having("passed")
        resolved[patch] = task.fail_to_pass | pass_to_pass <= passed
        if patch.name == "7-one-more.patch":
            assert task.fail_to_pass <= passed, "it repairs the bug while it breaks another test"
    samples = [patches[(sample - 1) % len(patches)] for sample in (1, 2, 3, 4)]
    assert [resolved[patch] for patch in samples] == expected_resolved()[agent][number]


def test_the_scripted_agents_solve_as_often_as_the_demo_promises() -> None:
    counts = {}
    for agent, tasks in expected_resolved().items():
        assert tasks.keys() == TASKS.keys() == agent_patches(agent).keys()
        always = sum(all(samples) for samples in tasks.values())
        sometimes = sum(any(samples) for samples in tasks.values()) - always
        counts[agent] = (always, sometimes)
    assert counts == {"steady": (7, 1), "broad": (6, 3)}


@pytest.mark.parametrize("agent", sorted(expected_resolved()))
def test_agent_patches_apply_to_the_parent_tree(repository: Path, tmp_path: Path, agent: str) -> None:
    used = set()
    for number, patches in agent_patches(agent).items():
        tree = tmp_path / str(number)
        git(repository, "worktree", "add", "--detach", str(tree), f"{TASKS[number].commit}^1")
        for patch in {patch for patch in patches if patch is not None}:
            subprocess.run(["git", "apply", "--check", str(patch)], cwd=tree, check=True)
            used.add(patch)
        git(repository, "worktree", "remove", "--force", str(tree))
    assert used == set((DEMO / "agents" / agent).iterdir())
