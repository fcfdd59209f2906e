"""The report of a sweep as a stage: what it gathers from the lake, and what it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.reports import SweepResults, summary
from evalpipe.reports.task_pages import transcript_file
from evalpipe.stages.gradings import grade_sample
from evalpipe.stages.reporting import gather_results, write_report
from evalpipe_tests.agents.adapters import ShellAgent
from evalpipe_tests.stages.sweeping import first_key, part_of, run
from evalpipe_tests.stages.workspaces import TestBench

pytestmark = pytest.mark.slow
MEND_ALOUD = ShellAgent("sed -i 's/return 11/return 12/' clock.py; echo '<script>mended</script>'")


def _gathered(bench: TestBench) -> SweepResults:
    return gather_results(bench, bench.sweep, {name: bench.agent(name) for name in ("reference", "empty")})


def _graded(bench: TestBench) -> dict[str, str]:
    # A control that did what it must has no place on the page; this one did not.
    part, key = part_of(bench, "empty"), first_key(bench)
    run(bench, part, MEND_ALOUD, key)
    row, _ = grade_sample(bench, part, key, {})
    assert row["resolved"]
    return row


def test_what_a_report_says_of_tasks_prices_and_candidates_comes_from_the_files(frozen: TestBench) -> None:
    frozen.rewrite("data/repos/clock.yaml", "source:", "public: true\nsource:")
    frozen.rewrite("data/sweeps/spring.yaml", "samples:", "currency: EUR\nregion: eu\nusd_rate: 0.9\nsamples:")
    results = _gathered(frozen)
    assert "2 tasks, all from a public repository (clock); " in str(summary(results)["provenance"])
    assert (results.prices.currency, results.prices.usd_rate, results.prices.region) == ("EUR", 0.9, "eu")
    (left_out,) = results.left_out
    assert (left_out.repository, left_out.reason) == ("clock", "no_signal")
    assert left_out.detail


def test_transcripts_lie_beside_the_report_as_plain_text(frozen: TestBench) -> None:
    row = _graded(frozen)
    folder = frozen.report_path("spring").parent
    page = write_report(frozen, folder, _gathered(frozen)).read_text()
    link = transcript_file(row["transcript_sha256"])
    assert f'<a href="{link}">transcript</a>' in page
    assert b"<script>mended</script>" in (folder / link).read_bytes()
    assert (folder / link).read_bytes() == frozen.lake.blobs.get(row["transcript_sha256"])
    (folder / "transcripts" / "old.txt").write_text("of an attempt that is not in the report")
    write_report(frozen, folder, _gathered(frozen))
    assert [path.name for path in (folder / "transcripts").iterdir()] == [Path(link).name]
    frozen.lake.blobs.path(row["transcript_sha256"]).unlink()
    assert link not in write_report(frozen, folder, _gathered(frozen)).read_text()
    assert list((folder / "transcripts").iterdir()) == []


def test_a_table_that_has_no_rows_any_more_is_taken_away(frozen: TestBench) -> None:
    folder = frozen.report_path("spring").parent
    results = _gathered(frozen)
    write_report(frozen, folder, results)
    assert (folder / "tables" / "left_out.csv").exists()
    write_report(frozen, folder, replace(results, left_out=()))
    names = {path.name for path in (folder / "tables").iterdir()}
    assert "scoreboard.csv" in names
    assert not {"left_out.csv", "left_out.parquet"} & names


@pytest.mark.parametrize("content", [None, b"not the patch that was graded"])
def test_a_patch_that_is_lost_or_changed_is_named_and_its_verdict_stands(
    frozen: TestBench, content: bytes | None
) -> None:
    row = _graded(frozen)
    path = frozen.lake.blobs.path(row["patch_sha256"])
    path.unlink() if content is None else path.write_bytes(content)
    results = _gathered(frozen)
    found = summary(results)
    (text,) = (one["text"] for one in found["cautions"] if one["reason"] == "patches_lost")
    assert f"the patch of 1 attempt is missing from the lake or was changed there (empty {row['task_id']} " in text
    assert next(agent for agent in found["agents"] if agent["agent"] == "empty")["pass_at_1"] == 1
    page = write_report(frozen, frozen.report_path("spring").parent, results).read_text()
    assert f"<code>{row['patch_sha256']}</code> is missing from the lake" in page
    assert "not the patch that was graded" not in page
