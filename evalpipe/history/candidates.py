"""A mainline change as one row: kept as a candidate for a task, or rejected with one reason; and the rules for it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from evalpipe.history.decision import Category, CategoryRule, MiningReason
from evalpipe.history.ledger import Entry
from evalpipe.history.links import IssueLink
from evalpipe.history.paths import PathRules
from evalpipe.history.problem import ProblemSource, UnusedText
from evalpipe.history.pull_requests import Forge, PullRequest
from evalpipe.history.shapes import Shape

_LONGEST_ID: Final = 120


@dataclass(frozen=True, slots=True)
class MiningRules:
    """What a team says about its repository.

    `repository` is its short name, which starts every candidate's id; globs are explained in
    `paths.PathRules`; `mainline` is the mined branch's name, by which back-merges are recognised. `jira_projects` are
    the projects whose keys (`ABC-12`) are issues of this repository. `categories` gives single changes another
    category, by candidate id, by pull request (`#12`), or by commit (seven digits or more).
    """

    repository: str
    test_globs: tuple[str, ...] = ()
    source_globs: tuple[str, ...] = ()
    generated_globs: tuple[str, ...] = ()
    max_files: int = 25
    require_issue: bool = False
    mainline: str | None = None
    jira_projects: tuple[str, ...] = ()
    categories: Mapping[str, Category] = field(default_factory=dict)

    @property
    def paths(self) -> PathRules:
        """The rules by which files are told apart."""
        return PathRules(self.test_globs, self.source_globs, self.generated_globs)

    @property
    def digest(self) -> str:
        """Equal for equal rules."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values["categories"] = sorted((key, str(category)) for key, category in self.categories.items())
        return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()


class Candidate(NamedTuple):
    """One mainline change with all that was found out about it.

    Dates are in UTC: `author_date` is when the work began (the earliest author date among the change's
    commits), `merge_date` when it came to the mainline. `author` wrote the last commit of the work. `forge` says whose
    `number` it is. `branch_commits` are the commits that a merge brought or a rebase consists of, the change's own
    excepted. `unused_texts` are issues and pull requests that it names and whose texts could not be used. `reverts` and
    `repeats` are commits of earlier changes; `inline_tests` are those of the source files in which test code changed.

    What needs file contents (lines, issues, problem text, `patch_id`, inline tests, and whether a manifest really
    changed a dependency) is looked up for kept changes and those rejected for `repeat` or `no_issue` only; the lines of
    all others are None and their issues and texts are empty.
    """

    candidate_id: str
    repository: str
    commit: str
    parent: str | None
    tree: str
    shape: Shape
    forge: Forge | None
    number: int | None
    change_id: str | None
    branch_commits: tuple[str, ...]
    subject: str
    author: str
    author_date: datetime
    merge_date: datetime
    reason: MiningReason
    reason_detail: str
    source_files: tuple[bytes, ...]
    test_files: tuple[bytes, ...]
    inline_tests: tuple[bytes, ...]
    files_changed: int
    lines_added: int | None
    lines_removed: int | None
    patch_id: str | None
    category: Category
    category_rule: CategoryRule
    issues: tuple[IssueLink, ...]
    problem_source: ProblemSource
    problem_text: str
    unused_texts: tuple[UnusedText, ...]
    reverts: str | None
    repeats: str | None
    coding_agent: bool

    @property
    def decision(self) -> str:
        """ "kept" or "rejected"."""
        return "kept" if self.reason is MiningReason.kept else "rejected"

    @property
    def entry(self) -> Entry:
        """What later changes find it by."""
        return Entry(
            commits=(*self.branch_commits, self.commit),
            pull_request=None if self.forge is None or self.number is None else PullRequest(self.forge, self.number),
            change_id=self.change_id,
            patch_id=self.patch_id,
            files=self.source_files + self.test_files,
            reverts=self.reverts,
            repeats=self.repeats,
            kept=self.reason is MiningReason.kept,
        )


def funnel(reasons: Iterable[MiningReason]) -> list[tuple[MiningReason, int]]:
    """How many changes each reason took, in the order in which the reasons are looked at, kept last."""
    counts = Counter(reasons)
    return [(reason, counts[reason]) for reason in MiningReason]


def candidate_id(repository: str, number: int | None, commit: str) -> str:
    """A slug of at most 120 characters that names a change for good: repository, pull request, commit."""
    tail = commit[:10] if number is None else f"{number}-{commit[:10]}"
    return f"{_slug(repository)[: _LONGEST_ID - len(tail) - 1]}-{tail}"


@lru_cache(maxsize=64)
def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)
