"""Mining a workspace's repository: what is stored, and what a second run reads and says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalpipe.config import Workspace
from evalpipe.history import MINING_VERSION, HistoryError, Mining, MiningReason, Repository
from evalpipe.stages import mining
from evalpipe.stages.bench import Workbench
from evalpipe.stages.mining import (
    mine_repository,
    mining_funnel,
    stored_mining_funnel,
    stored_mining_warnings,
    summarize,
)
from evalpipe_tests.history.builder import Builder, File

CONFIG = "source: source.git\nmainline: main\nrunner:\n  name: pytest\n"
WORK: dict[bytes, File] = {b"src/clock.py": b"1\n2\n", b"tests/test_clock.py": b"1\n"}
BACK: dict[bytes, File] = {b"src/clock.py": b"0\n", b"tests/test_clock.py": b"0\n"}


class Place:
    """A workspace with a repository that grows."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = Builder(root / "source.git")
        self.source.commit({b"src/clock.py": b"0\n"}, "Start")
        (root / "data/repos").mkdir(parents=True)
        (root / "workspace.yaml").write_text("load_from: []\n")
        self.configure("")

    def configure(self, more: str) -> None:
        (self.root / "data/repos/clock.yaml").write_text(CONFIG + more)

    @property
    def bench(self) -> Workbench:
        return Workbench(Workspace(self.root))

    def mine(self) -> list[dict[str, Any]]:
        bench = self.bench
        summary = mine_repository(bench, bench.workspace.load_repository("clock"))
        rows = bench.lake.rows("candidate_commits", "clock")
        assert summary.changes == len(rows)
        assert summary.kept == [row["candidate_id"] for row in rows if row["reason"] == "kept"]
        assert {reason.value: count for reason, count in summary.counts.items()} == dict(
            stored_mining_funnel(bench, ["clock"])
        )
        return rows


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many changes each look gave."""
    counts: list[int] = []

    class Counted(Mining):
        def __iter__(self) -> Any:
            counts.append(0)
            for candidate in super().__iter__():
                counts[-1] += 1
                yield candidate

    monkeypatch.setattr(mining, "Mining", Counted)
    return counts


def test_rows_hold_what_was_found(place: Place) -> None:
    work = place.source.commit({**WORK, b"tests/\xff.py": b"1"}, f"Repair (#12)\n\nFixes #3\n\nChange-Id: I{'a' * 40}")
    revert = place.source.commit(BACK, f"Back\n\nThis reverts commit {work}.")
    _root, row, back = place.mine()
    assert (row["commit"], row["forge"], row["number"], row["change_id"]) == (work, "github", 12, f"I{'a' * 40}")
    assert (row["reverted_by"], back["reverts"], back["reason"]) == (revert, work, "revert")
    assert row["test_files"] == [b"tests/test_clock.py", b"tests/\xff.py"]
    assert row["issues"] == [{"key": "#3", "found_in": "merge_message", "strength": "closing"}]
    assert (row["inline_tests"], row["branch_commits"], row["repeats"]) == ([], [], None)
    assert len(row["patch_id"]) == 16
    assert back["patch_id"] is None


def test_second_run_reads_what_is_new_and_says_what_one_run_says(place: Place, walks: list[int]) -> None:
    for number in range(5):
        place.source.commit({b"src/clock.py": b"%d\n" % number, b"tests/t.py": b"%d\n" % number}, f"Work (#{number})")
    first = place.mine()
    assert place.mine() == first
    assert walks == [6]
    target = first[3]["commit"]
    place.source.commit({b"src/clock.py": b"7\n", b"tests/t.py": b"7\n"}, "Work, second part (#4)")
    revert = place.source.commit(BACK, f"Back (#9)\n\nThis reverts commit {target}.")
    second = place.mine()
    assert walks == [6, 2]
    assert [row["shape"] for row in second[-2:]] == ["rebase", "squash"]
    assert second[3]["reverted_by"] == revert
    (place.root / "data/lake/candidate_commits/clock.parquet").unlink()
    assert place.mine() == second
    assert walks == [6, 2, 7]


@pytest.mark.parametrize(
    "more",
    [
        "max_files: 1\n",
        "paths:\n  tests: [checks/**]\n",
        "jira_projects: [ABC]\n",
        'categories:\n  "#1": other\n',
        "require_issue: true\n",
        "issues: issues.jsonl\n",
    ],
)
def test_other_rules_mine_everything_again(place: Place, walks: list[int], more: str) -> None:
    (place.root / "issues.jsonl").write_text("")
    place.source.commit(WORK, "Repair (#1)")
    place.mine()
    place.configure(more)
    place.mine()
    assert walks == [2, 2]


def test_other_issue_texts_and_other_code_mine_everything_again(
    place: Place, walks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    export = place.root / "issues.jsonl"
    export.write_text("")
    place.configure("issues: issues.jsonl\n")
    place.mine()
    export.write_text("\n")
    place.mine()
    place.mine()
    monkeypatch.setattr(mining, "MINING_VERSION", MINING_VERSION + 1)
    place.mine()
    assert walks == [1, 1, 1]


def test_rewritten_mainline_is_mined_from_the_start(place: Place) -> None:
    base = place.source.branches["main"]
    for number in range(4):
        place.source.commit({b"src/clock.py": b"%d\n" % number, b"tests/t.py": b"%d\n" % number}, f"Work (#{number})")
    place.mine()
    place.source.point("main", base)
    place.source.commit(WORK, "Instead")
    rows = place.mine()
    assert [row["subject"] for row in rows] == ["Start", "Instead"]
    place.source.point("main", base)
    assert [row["subject"] for row in place.mine()] == ["Start"]


def test_file_of_an_older_evalpipe_is_mined_again(place: Place, walks: list[int]) -> None:
    place.source.commit(WORK, "Repair")
    rows = place.mine()
    path = place.root / "data/lake/candidate_commits/clock.parquet"
    table = pq.read_table(path)
    path.unlink()
    pq.write_table(table.drop_columns(["mining_key", "patch_id", "branch_commits", "repeats"]), path)
    assert place.mine() == rows
    assert walks == [2, 2]


def test_many_rows_are_written_in_pieces(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "_ROWS_AT_ONCE", 2)
    monkeypatch.setattr("evalpipe.lake.tables._ROWS_OF_CHUNK", 3)
    for number in range(9):
        place.source.commit({b"src/clock.py": b"%d\n" % number, b"tests/t.py": b"%d\n" % number}, f"Work (#{number})")
    rows = place.mine()
    assert [row["number"] for row in rows] == [None, *range(9)]
    place.source.commit(BACK, f"Back\n\nThis reverts commit {rows[1]['commit']}.")
    assert [row["reverted_by"] is None for row in place.mine()] == [True, False, *([True] * 9)]


def test_dry_run_says_the_same_and_stores_nothing(place: Place) -> None:
    place.source.commit(WORK, "Repair")
    bench = place.bench
    summary = summarize(bench, bench.workspace.load_repository("clock"))
    assert dict(mining_funnel(summary))["kept"] == summary.counts[MiningReason.kept] == 1
    assert not bench.lake.has("candidate_commits", "clock")
    assert place.mine()
    assert mining_funnel(summary) == [
        (reason.value, dict(stored_mining_funnel(bench, ["clock"])).get(reason.value, 0)) for reason in MiningReason
    ]


def test_kept_commits_stay_in_the_mirror(place: Place) -> None:
    base = place.source.branches["main"]
    work = place.source.commit(WORK, "Repair")
    place.mine()
    place.source.point("main", base)
    place.source.commit(WORK, "Instead")
    place.mine()
    assert Repository(place.bench.mirror_path("clock")).read_tree(work)


def test_failure_leaves_the_stored_rows(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.source.commit(WORK, "Repair")
    rows = place.mine()
    place.source.commit(BACK, "Other")

    def refuse(*_arguments: object) -> pa.Table:
        raise HistoryError("no")

    with monkeypatch.context() as patched:
        patched.setattr(mining, "_columns", refuse)
        with pytest.raises(HistoryError):
            place.mine()
    assert place.bench.lake.rows("candidate_commits", "clock") == rows
    assert len(place.mine()) == 3


def test_category_of_no_change_is_told(place: Place) -> None:
    rebased = place.source.commit({b"src/clock.py": b"1\n"}, "Repair, part one (#12)")
    place.source.commit({b"tests/t.py": b"1\n"}, "Repair, part two (#12)")
    base = place.source.branches["main"]
    brought = place.source.commit(WORK, "Work", branch="topic", parents=[base])
    merge = place.source.commit(WORK, "Merge branch 'topic'", parents=[base, brought])
    names = ["#12", rebased[:7], f"clock-{merge[:10]}", "#99", brought[:9], f"clock-12-{merge[:10]}"]
    place.configure("categories:\n" + "".join(f'  "{name}": other\n' for name in names))
    bench = place.bench
    config = bench.workspace.load_repository("clock")
    for summary in (summarize(bench, config), mine_repository(bench, config), mine_repository(bench, config)):
        assert [warning.split("'")[1] for warning in summary.warnings] == names[3:]
    assert "data/repos/clock.yaml" in summary.warnings[0]
    assert "correct it" in summary.warnings[0]
    assert stored_mining_warnings(bench, config) == summary.warnings
    place.configure("")
    assert mine_repository(bench, bench.workspace.load_repository("clock")).warnings == []
