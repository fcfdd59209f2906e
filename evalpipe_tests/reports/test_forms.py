import io
from dataclasses import replace

import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from evalpipe.reports import html_report, scoreboard_text, summary
from evalpipe.reports.forms import redacted, report_markdown, report_tables, table_files
from evalpipe.reports.records import LeftOutCandidate, SweepResults
from evalpipe_tests.reports.sweeps import BROAD, STEADY, SweepBuilder, graded_row, two_agents
from evalpipe_tests.reports.test_rows import both_prompts

SECRET = "secretword"


def _secret() -> SweepResults:
    unmet = [{"test_id": SECRET, "expected_in": "fail_to_pass", "outcome": "failed", "message": SECRET}]
    row = graded_row(
        "steady", "demo-000", "original-1", resolved=False, attempt=0, unmet_tests=unmet, detail=SECRET,
        ignored_paths=[SECRET.encode()], attempt_id=SECRET, patch_sha256=SECRET, transcript_sha256=SECRET,
        integrity="flagged", integrity_reasons=[f"network_tool: {SECRET}"],
    )  # fmt: skip
    results = SweepBuilder({"steady": STEADY, "broad": BROAD}, rows=[row]).build()
    tasks = tuple(
        replace(
            task,
            title=SECRET,
            repository=SECRET,
            prompts={"original": SECRET},
            fail_to_pass=(SECRET,),
            digest=SECRET,
            reference_lines=5,
        )
        for task in results.tasks
    )
    manifests = {
        key: {
            **found, "task_set": {"name": SECRET}, "run_id": SECRET, "provider_url": SECRET,
            "agent_images": {SECRET: SECRET},
            "environment": {"images": {SECRET: 1}, "image_digest": SECRET, "network": "none", "new": SECRET},
            "agent": {
                **found["agent"], "command": [SECRET], "variables": {"A": SECRET}, "provider": SECRET,
                "tools": [SECRET], "new": SECRET,
            },
        }
        for key, found in results.manifests.items()
    }  # fmt: skip
    return replace(
        results, tasks=tasks, manifests=manifests, task_set=SECRET, revision=SECRET, selection_rule=SECRET,
        read_blob=lambda digest: SECRET.encode(), patch_lines={SECRET: 15}, transcripts=frozenset({SECRET}),
        left_out=(LeftOutCandidate(SECRET, SECRET, "no_signal", SECRET),),
    )  # fmt: skip


def test_a_redacted_report_has_no_code_no_text_and_no_ids_and_the_same_numbers() -> None:
    results = _secret()
    assert SECRET in html_report(results)
    found = redacted(results)
    tables = b"".join(table_files(found).values())
    for text in (html_report(found), report_markdown(found), scoreboard_text(found), str(summary(found)), str(tables)):
        assert SECRET not in text
        assert "demo-0" not in text
    plain, hidden = summary(results), summary(found)
    assert [row["pass_at_1"] for row in plain["agents"]] == [row["pass_at_1"] for row in hidden["agents"]]
    assert plain["usage"] == hidden["usage"]
    assert plain["usage"][0]["lines"]["total"] == 3
    assert "task-001" in html_report(found)


def test_a_redacted_report_tells_that_agents_were_treated_differently_and_not_by_what_name() -> None:
    results = _secret()
    other = {**results.manifests["broad", "original"], "task_set": {"name": "another set"}}
    found = redacted(replace(results, manifests={**results.manifests, ("broad", "original"): other}))
    (text,) = (one["text"] for one in summary(found)["cautions"] if one["reason"] == "manifests_differ")
    assert text.startswith("run under different conditions: not_shown: ")
    assert "another set" not in html_report(found)


def test_the_markdown_has_the_decision_the_answer_and_the_tables() -> None:
    text = report_markdown(both_prompts())
    assert text.startswith("# Which agent do we licence")
    assert report_markdown(two_agents(decision="One?\n\nTwo?")).startswith("# One? Two?\n\n**broad")
    assert "## Prompt gap" in text
    assert "## Usage" in text
    assert "Not measured of any attempt" in text


def test_every_table_is_there_as_parquet_and_csv_with_the_same_cells() -> None:
    results = both_prompts()
    tables, files = report_tables(results), table_files(results)
    assert set(files) == {f"{name}.{kind}" for name in tables for kind in ("parquet", "csv")}
    for name, table in tables.items():
        parquet = pq.read_table(io.BytesIO(files[f"{name}.parquet"]))
        assert [tuple(row) for row in zip(*(column.to_pylist() for column in parquet.columns), strict=True)] == list(
            table.rows
        )
        csv = pacsv.read_csv(io.BytesIO(files[f"{name}.csv"]))
        assert csv.num_rows == len(table.rows)


def test_no_cell_of_a_csv_is_a_formula() -> None:
    text = table_files(two_agents())["comparisons.csv"].decode()
    assert '"\'+14 points"' in text
