"""A workspace that an older evalpipe has filled: columns that came later are not in its files."""

from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace

pytestmark = pytest.mark.slow

LATER = {
    "candidate_commits": (
        *("forge", "change_id", "branch_commits", "inline_tests", "patch_id", "repeats", "reverted_by"),
        *("unused_texts", "mining_key"),
    ),
    "task_images": ("base_commit", "day", "packages"),
    "validated_tasks": ("missing_names", "need_network", "quarantine_causes", "suite_files"),
    "agent_runs": (
        *("cache_write_tokens", "reasoning_tokens", "rate_limit_wait_s", "usage_warnings", "trajectory_sha256"),
        *("reported_input_tokens", "reported_output_tokens", "reported_cost_usd"),
    ),
    "graded_results": ("transcript_sha256",),
}
"""The optional columns of each table; but not of `validation_runs`, whose older rows have another key and run again."""


def test_nothing_of_an_older_lake_is_lost_or_paid_for_again(
    copied: Callable[[Walk], TinyWorkspace], finished: Walk
) -> None:
    tiny = copied(finished)
    before = tiny.succeed("report", "small", "--json").json()
    for table, columns in LATER.items():
        files = list((tiny.lake / table).rglob("*.parquet"))
        assert files
        for file in files:
            if file.name == ".together.parquet":
                file.unlink()
                continue
            rows = pq.read_table(file)
            pq.write_table(rows.drop_columns([name for name in columns if name in rows.column_names]), file)
    ledger = {path: path.read_bytes() for path in (tiny.lake / "agent_runs").rglob("*.parquet")}
    begun = tiny.gate.begun()

    tiny.succeed("lake", "verify")
    assert tiny.succeed("status", "--json").json()["next_steps"] == []
    for command in (["run", "small"], ["grade", "small"]):
        tiny.succeed(*command)
    after = tiny.succeed("report", "small", "--json").json()
    assert {path: path.read_bytes() for path in ledger} == ledger
    assert tiny.gate.begun() == begun
    assert after["agents"] == before["agents"]
    assert after["comparisons"] == before["comparisons"]
    # Mined by rules that nobody knows any more: each change is looked at again, and is the same candidate.
    mined = tiny.succeed("mine", "--json").json()
    assert mined["funnel"] == finished.answers["mine"].json()["funnel"]
    assert tiny.succeed("status", "--json").json()["next_steps"] == []
