"""What an agent is told of a task: its texts, the criteria that their author accepted, and what the linter says.

Freezing and `evalpipe prompts draft` read the same things here, so that a draft foretells what a freeze will say.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evalpipe.config import RepositoryConfig
from evalpipe.history import FileKind, Repository
from evalpipe.lake import Row
from evalpipe.stages.mining import path_rules
from evalpipe.tasks import (
    Decisions,
    Problem,
    PromptFinding,
    decisions_of,
    names_not_in,
    problem_text,
    read_files,
    terse_texts,
)
from evalpipe.tasks.acceptance import asserted_literals, unknowable
from evalpipe.tasks.hidden_tests import HiddenTests, find_hidden_tests
from evalpipe.tasks.leak_lint import answer_of, leaks
from evalpipe.validation import ValidationClass


@dataclass(frozen=True, slots=True)
class SetTexts:
    """What people wrote for the tasks of a set, by task."""

    terse: Mapping[str, str]
    decisions: Mapping[str, Decisions]

    @classmethod
    def read(cls, folder: Path) -> "SetTexts":
        """Read the files in the folder of a set. Raises TaskSetError."""
        return cls(terse_texts(folder), decisions_of(folder))


@dataclass(frozen=True, slots=True)
class ReferenceChange:
    """A candidate's change, split: the paths of its tests, both patches, and the tests that agents do not get."""

    tests: list[bytes]
    gold: bytes
    test: bytes
    hidden: HiddenTests

    @classmethod
    def read(
        cls, mirror: Repository, config: RepositoryConfig, candidate: Row, fail_to_pass: Collection[str]
    ) -> "ReferenceChange":
        rules = path_rules(config)
        parent, commit = candidate["parent"], candidate["commit"]
        before, after = mirror.read_tree(parent), mirror.read_tree(commit)
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        tests = [path for path in changed if rules.kind_of(path) is FileKind.test]
        gold = mirror.diff(parent, commit, [path for path in changed if path not in set(tests)])
        test = mirror.diff(parent, commit, tests)
        return cls(tests, gold, test, find_hidden_tests(mirror, parent, tests, fail_to_pass))


def admits(config: RepositoryConfig, validated: Row) -> bool:
    """Whether a candidate can be a task as far as its class says."""
    found = ValidationClass(validated["validation_class"])
    compile_only = found is ValidationClass.COMPILE_ONLY and config.validation.admit_compile_only
    return found is ValidationClass.VALID or compile_only


def problem_of(mirror: Repository, candidate: Row, validated: Row, change: ReferenceChange, texts: SetTexts) -> Problem:
    """The problem of a task as it is frozen."""
    candidate_id = candidate["candidate_id"]
    decisions = texts.decisions.get(candidate_id, Decisions())
    problem = Problem(
        source=candidate["problem_source"],
        original=original_text(candidate, validated),
        terse=texts.terse.get(candidate_id),
        criteria=decisions.accepted,
    )
    proposed = proposed_criteria(mirror, candidate["parent"], problem, change, validated["missing_names"] or ())
    return problem.model_copy(
        update={
            "undecided_criteria": decisions.undecided(proposed),
            "lint": tuple(_lint(problem, candidate, change)),
        }
    )


def original_text(candidate: Row, validated: Row) -> str:
    """The text of a candidate's problem as agents get it."""
    commits = (candidate["commit"], *candidate["branch_commits"])
    return problem_text(candidate["problem_text"], commits, candidate["number"], validated["fail_to_pass"])


def proposed_criteria(
    mirror: Repository, parent: str, problem: Problem, change: ReferenceChange, missing_names: Iterable[str]
) -> list[str]:
    """What the tests of a change ask for and what some text of `problem` and the code that an agent gets lack.

    Names that the tests need come first, then the values that they assert, in their order.
    """
    texts = problem.texts().values()
    names = [name for name in missing_names if any(names_not_in(text, [name]) for text in texts)]
    literals = [
        literal
        for literal in asserted_literals(change.test)
        if literal not in names and any(literal not in text for text in texts)
    ]
    if literals:
        tree = {path: entry for path, entry in mirror.read_tree(parent).items() if path not in change.hidden.paths}
        literals = unknowable(literals, "", (file.data for file in read_files(mirror, tree)))
    return [*names, *literals]


def _lint(problem: Problem, candidate: Row, change: ReferenceChange) -> Iterable[PromptFinding]:
    answer = answer_of(candidate["commit"], candidate["number"], change.gold, change.test)
    for mode, text in problem.texts().items():
        for leak in leaks(text, answer):
            yield PromptFinding(mode=mode, kind=leak.kind.value, named=leak.named)
