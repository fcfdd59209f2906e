"""Prompts from their draft to what an agent is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe.stages.drafting import TerseDraft, draft_prompts, model_writer
from evalpipe.stages.freezing import freeze_task_set
from evalpipe.tasks import PromptMode, Task, TaskSetError, load_task_set, prompt
from evalpipe_tests.asking_agent import KEY_VARIABLE, REAL_KEY, write_asking_agent
from evalpipe_tests.model_replies import Say
from evalpipe_tests.model_server import ModelServer
from evalpipe_tests.stages.workspaces import TestBench


def _candidates(bench: TestBench) -> dict[int, str]:
    return {row["number"]: row["candidate_id"] for row in bench.lake.rows("candidate_commits", "clock")}


def _folder(bench: TestBench) -> Path:
    return bench.workspace.task_sets_dir / "next"


def _tasks(bench: TestBench) -> dict[str, Task]:
    freeze_task_set(bench, "next", [bench.repository], provisional=False)
    return dict(load_task_set(_folder(bench)).tasks)


def _set_column(bench: TestBench, number: int, table: str, **columns: object) -> None:
    mine = _candidates(bench)[number]
    rows = [{**row, **columns} if row["candidate_id"] == mine else row for row in bench.lake.rows(table, "clock")]
    bench.lake.write(table, rows, "clock")


def test_a_draft_has_a_text_from_the_title_and_what_the_tests_ask_for(frozen: TestBench) -> None:
    noon, hours = (_candidates(frozen)[number] for number in (1, 4))
    drafts = {one.task_id: one for one in draft_prompts(frozen, "next", [frozen.repository])}
    assert drafts.keys() == {noon, hours}
    assert drafts[noon].terse is TerseDraft.WRITTEN
    assert (_folder(frozen) / "terse" / f"{noon}.md").read_text() == "Show noon as twelve.\n"
    assert drafts[noon].undecided == ("12",)
    # The title of the other has the value that its test asserts.
    assert drafts[hours].undecided == ()
    assert not (_folder(frozen) / "criteria" / f"{hours}.yaml").exists()
    text = (_folder(frozen) / "criteria" / f"{noon}.yaml").read_text()
    assert text.endswith('- value: "12"\n  in_reference: true\n  decision: undecided\n')
    assert text.startswith(f"# What the tests of {noon} ask for")


def test_what_people_wrote_is_kept(frozen: TestBench) -> None:
    noon = _candidates(frozen)[1]
    draft_prompts(frozen, "next", [frozen.repository])
    terse, criteria = _folder(frozen) / "terse" / f"{noon}.md", _folder(frozen) / "criteria" / f"{noon}.yaml"
    terse.write_text("The middle of the day is off.\n")
    criteria.write_text("# Mine.\n- value: 'PM'\n  decision: accept\n")
    drafts = {one.task_id: one for one in draft_prompts(frozen, "next", [frozen.repository])}
    assert drafts[noon].terse is TerseDraft.KEPT
    assert terse.read_text() == "The middle of the day is off.\n"
    after = criteria.read_text()
    assert after.startswith("# Mine.\n- value: 'PM'\n  decision: accept\n- value: \"12\"\n")
    draft_prompts(frozen, "next", [frozen.repository])
    assert criteria.read_text() == after


def test_an_accepted_criterion_is_told_to_agents_and_a_dropped_one_is_not(frozen: TestBench) -> None:
    noon = _candidates(frozen)[1]
    draft_prompts(frozen, "next", [frozen.repository])
    path = _folder(frozen) / "criteria" / f"{noon}.yaml"
    path.write_text(path.read_text().replace("undecided\n", "accept\n") + "- value: PM\n  decision: drop\n")
    task = _tasks(frozen)[noon]
    assert task.problem.criteria == ("12",)
    assert task.problem.undecided_criteria == ()
    for mode in PromptMode:
        assert 'These exact values are expected:\n- "12"\n\nChange the code' in prompt(task, mode, "pytest")
        assert "PM" not in prompt(task, mode, "pytest")


def test_an_undecided_criterion_is_in_the_record_and_not_in_the_prompt(frozen: TestBench) -> None:
    noon = _candidates(frozen)[1]
    task = _tasks(frozen)[noon]
    assert (task.problem.criteria, task.problem.undecided_criteria) == ((), ("12",))
    assert "12" not in prompt(task, PromptMode.ORIGINAL, "pytest")


def test_a_set_with_other_decisions_is_another_set(frozen: TestBench) -> None:
    noon = _candidates(frozen)[1]
    draft_prompts(frozen, "next", [frozen.repository])
    path = _folder(frozen) / "criteria" / f"{noon}.yaml"
    _tasks(frozen)
    path.write_text(path.read_text().replace("undecided\n", "accept\n"))
    with pytest.raises(TaskSetError, match="already holds another set"):
        _tasks(frozen)


def test_a_title_that_names_the_answer_is_no_draft_and_an_original_that_does_is_flagged(frozen: TestBench) -> None:
    noon = _candidates(frozen)[1]
    _set_column(frozen, 1, "candidate_commits", problem_text="Make `noon()` right\n\nSee clock.py.")
    (one,) = [one for one in draft_prompts(frozen, "next", [frozen.repository]) if one.task_id == noon]
    assert (one.terse, one.detail) == (TerseDraft.NAMES_THE_ANSWER, "identifier 'noon'")
    assert one.original_names == ("file 'clock.py'", "identifier 'noon'")
    assert not (_folder(frozen) / "terse" / f"{noon}.md").exists()
    problem = _tasks(frozen)[noon].problem
    assert [(found.mode, found.kind, found.named) for found in problem.lint or ()] == [
        (PromptMode.ORIGINAL, "file", "clock.py"),
        (PromptMode.ORIGINAL, "identifier", "noon"),
    ]


def test_a_text_without_a_title_is_told(frozen: TestBench) -> None:
    noon = _candidates(frozen)[1]
    _set_column(frozen, 1, "candidate_commits", problem_text="Noon\n\nIt is wrong.")
    (one,) = [one for one in draft_prompts(frozen, "next", [frozen.repository]) if one.task_id == noon]
    assert one.terse is TerseDraft.NO_TITLE


def test_the_names_that_tests_miss_are_proposed_and_admit_the_task_when_accepted(frozen: TestBench) -> None:
    hours = _candidates(frozen)[4]
    columns = {"validation_class": "compile_only", "missing_names": ["opening"]}
    _set_column(frozen, 4, "validated_tasks", **columns)
    frozen.rewrite("data/repos/clock.yaml", "timeout_s: 60\n", "timeout_s: 60\n  admit_compile_only: true\n")
    draft_prompts(frozen, "next", [frozen.repository])
    path = _folder(frozen) / "criteria" / f"{hours}.yaml"
    assert '- value: "opening"\n' in path.read_text()
    path.write_text(path.read_text().replace("undecided\n", "accept\n"))
    task = _tasks(frozen)[hours]
    assert task.interface_named
    assert task.problem.criteria == ("opening",)


@pytest.mark.parametrize(
    ("text", "told"),
    [("- value: x\n  decision: maybe\n", "accept"), ("value: [", "YAML"), ("- x\n", "value and decision")],
)
def test_a_criteria_file_that_cannot_be_read_is_named(frozen: TestBench, text: str, told: str) -> None:
    path = _folder(frozen) / "criteria" / "clock-1.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(TaskSetError, match=rf"clock-1\.yaml.*{told}"):
        _tasks(frozen)


def test_a_frozen_set_has_no_drafts(frozen: TestBench) -> None:
    with pytest.raises(TaskSetError, match="is frozen"):
        draft_prompts(frozen, "q", [frozen.repository])


@pytest.mark.slow
def test_a_model_may_write_the_terse_texts_and_is_told_the_problem_alone(
    frozen: TestBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, REAL_KEY)
    noon, hours = (_candidates(frozen)[number] for number in (1, 4))

    def answer(number: int, document: dict[str, Any]) -> Say:
        asked = str(document["messages"][-1]["content"])
        return Say("At midday the display\nis wrong." if "noon" in asked else "Change hours in clock.py.")

    with ModelServer(answer) as server:
        write_asking_agent(frozen.workspace.root, server.url)
        with model_writer(frozen, "local", "gpt-5") as (write, attempt):
            drafts = {one.task_id: one for one in draft_prompts(frozen, "next", [frozen.repository], write)}
            assert (attempt.progress().calls, attempt.progress().usage.input) == (2, 200)
            draft_prompts(frozen, "next", [frozen.repository], write)
            # What names the answer is not kept, so that it is asked for again; what was written is not.
            assert attempt.progress().calls == 3
    assert drafts[noon].terse is TerseDraft.WRITTEN
    assert (_folder(frozen) / "terse" / f"{noon}.md").read_text() == "At midday the display is wrong.\n"
    assert (drafts[hours].terse, "clock.py" in drafts[hours].detail) == (TerseDraft.NAMES_THE_ANSWER, True)
    assert not (_folder(frozen) / "terse" / f"{hours}.md").exists()
    told = b"".join(seen.body for seen in server.seen)
    assert b"return 12" not in told
    assert b"assert clock" not in told
    assert REAL_KEY.encode() not in told
