"""Drafts of a set's prompts, before it is frozen: what people then edit. Nothing that they wrote is ever replaced."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from evalpipe.config import RepositoryConfig
from evalpipe.gateway import Gateway, OpenAttempt, WireForm
from evalpipe.gateway.completion import complete
from evalpipe.lake import Row, write_atomically
from evalpipe.stages.bench import Workbench
from evalpipe.stages.model_access import gateway_provider
from evalpipe.stages.task_texts import ReferenceChange, SetTexts, admits, original_text, problem_of
from evalpipe.tasks import (
    Criterion,
    Decisions,
    Problem,
    PromptMode,
    TaskSetError,
    criteria_path,
    frozen_sets,
    terse_draft,
    terse_path,
    with_proposals,
)
from evalpipe.tasks.acceptance import unknowable
from evalpipe.tasks.leak_lint import NAMES
from evalpipe.tasks.terse_draft import MOST_CHARACTERS
from evalpipe.validation import ValidationClass


class TerseDraft(StrEnum):
    """What became of a task's terse text."""

    WRITTEN = "written"
    KEPT = "kept"
    NAMES_THE_ANSWER = "names_the_answer"
    """A freeze would refuse it. Of a draft there is no file then."""
    NO_TITLE = "no_title"
    """Neither the first line of the problem nor the model's answer is a sentence to begin with: write one by hand."""


@dataclass(frozen=True, slots=True)
class PromptDraft:
    """The prompts of one task as they now are; `undecided` are criteria that its author should accept or drop."""

    task_id: str
    terse: TerseDraft
    detail: str
    undecided: tuple[str, ...]
    original_names: tuple[str, ...]


Writer = Callable[[str], str]
"""Makes a terse text of a problem's; empty where it cannot."""

_INSTRUCTION = (
    "You restate problem reports of a software project for its developers. Write one or two plain sentences that name "
    "the symptom, as a user would notice it: what happens, and what was expected. Name no file, function, class, "
    "variable, commit, pull request or fix, and quote no code. Answer with the sentences alone."
)


@contextmanager
def model_writer(bench: Workbench, provider: str, model: str) -> Iterator[tuple[Writer, OpenAttempt]]:
    """Lets a model write terse texts, which sees the problem's text and nothing of the change; and what it has used.

    Raises ConfigError and ProviderError.
    """
    config = bench.workspace.load_provider(provider)
    form = WireForm(config.forms[0])
    with (
        Gateway([gateway_provider(config)]) as gateway,
        gateway.open_attempt("draft", provider, model=model) as attempt,
    ):

        def write(problem: str) -> str:
            said = " ".join(complete(attempt, form, model, _INSTRUCTION, problem).split())
            return f"{said}\n" if 0 < len(said) <= MOST_CHARACTERS else ""

        yield write, attempt


def draft_prompts(
    bench: Workbench, name: str, configs: Sequence[RepositoryConfig], write: Writer = terse_draft
) -> list[PromptDraft]:
    """Propose a terse text and acceptance criteria for each candidate that the task set `name` could have.

    `write` is asked for texts that are not there yet. Raises TaskSetError when the set is frozen already, when a file
    of it cannot be read, and without a candidate.
    """
    folder = bench.workspace.task_sets_dir / name
    if folder in frozen_sets(bench.workspace.task_sets_dir):
        raise TaskSetError(f"the task set {name} is frozen, and its prompts with it: draft those of another name")
    texts = SetTexts.read(folder)
    drafts = [found for config in configs for found in _of_repository(bench, folder, config, texts, write)]
    if not drafts:
        raise TaskSetError("there is nothing to draft for: no candidate is valid yet; `evalpipe status` says why")
    return drafts


def _of_repository(
    bench: Workbench, folder: Path, config: RepositoryConfig, texts: SetTexts, write: Writer
) -> Iterator[PromptDraft]:
    candidates = {row["candidate_id"]: row for row in bench.lake.rows("candidate_commits", config.name)}
    mirror = bench.mirror(config.name)
    for validated in bench.lake.rows("validated_tasks", config.name):
        task_id = validated["candidate_id"]
        if task_id not in candidates or not admits(config, validated):
            continue
        candidate = candidates[task_id]
        change = ReferenceChange.read(mirror, config, candidate, validated["fail_to_pass"])
        there = texts.terse.get(task_id)
        text = write(original_text(candidate, validated)) if there is None else there
        with_text = replace(texts, terse={**texts.terse, task_id: text} if text else texts.terse)
        problem = problem_of(mirror, candidate, validated, change, with_text)
        names = _names(problem, PromptMode.TERSE, validated)
        state = _terse_state(there, text, names)
        if state is TerseDraft.WRITTEN:
            write_atomically(terse_path(folder, task_id), text.encode())
        elif there is None and text:  # the draft is not kept, so it asks for no criteria
            problem = problem_of(mirror, candidate, validated, change, texts)
        _write_criteria(folder, task_id, texts.decisions.get(task_id, Decisions()), problem, change)
        yield PromptDraft(
            task_id,
            state,
            ", ".join(names),
            problem.undecided_criteria,
            _names(problem, PromptMode.ORIGINAL, None),
        )


def _terse_state(there: str | None, text: str, names: tuple[str, ...]) -> TerseDraft:
    if not text:
        return TerseDraft.NO_TITLE
    if names:
        return TerseDraft.NAMES_THE_ANSWER
    return TerseDraft.WRITTEN if there is None else TerseDraft.KEPT


def _names(problem: Problem, mode: PromptMode, validated: Row | None) -> tuple[str, ...]:
    """What a text names of the reference change; of a `compile_only` task's terse text the interface aside."""
    may_name = validated is not None and validated["validation_class"] == ValidationClass.COMPILE_ONLY
    return tuple(
        f"{found.kind} {found.named!r}"
        for found in problem.lint or ()
        if found.mode is mode and not (may_name and found.kind in NAMES)
    )


def _write_criteria(folder: Path, task_id: str, known: Decisions, problem: Problem, change: ReferenceChange) -> None:
    path = criteria_path(folder, task_id)
    proposed = [
        Criterion(value=value, in_reference=not unknowable([value], "", [change.gold]))
        for value in problem.undecided_criteria
    ]
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    after = with_proposals(before, task_id, known, proposed)
    if after != before:
        write_atomically(path, after.encode())
