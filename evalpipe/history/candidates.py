"""Every mainline change as one row: kept as a candidate for a task, or rejected with one reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from evalpipe.history.decision import (
    Category,
    CategoryRule,
    ChangedFiles,
    Decision,
    MiningReason,
    categorize,
    decide,
    is_revert,
)
from evalpipe.history.evidence import Evidence, gather
from evalpipe.history.issues import IssueLink, IssueTexts, LinkPlace, LinkStrength, links_in, strongest
from evalpipe.history.mainline import BranchCommit, MainlineCommit, walk_mainline
from evalpipe.history.messages import reverted_commit, reverted_number, shows_coding_agent, subject_of
from evalpipe.history.paths import FileKind, PathRules, fragment_number
from evalpipe.history.problem import Problem, ProblemSource, first_commit_time, merge_time, problem_of
from evalpipe.history.repository import Repository
from evalpipe.history.shapes import Change, Shape, changes_of

# So many changes share their git processes; also how many are held in memory.
_BATCH: Final = 256
_LONGEST_ID: Final = 120


@dataclass(frozen=True, slots=True)
class MiningRules:
    """What a team says about its repository.

    `repository` is its short name, which starts every candidate's id; globs are explained in
    `paths.PathRules`; `mainline` is the mined branch's name, by which back-merges are recognised.
    """

    repository: str
    test_globs: tuple[str, ...] = ()
    source_globs: tuple[str, ...] = ()
    generated_globs: tuple[str, ...] = ()
    max_files: int = 25
    require_issue: bool = False
    mainline: str | None = None

    @property
    def paths(self) -> PathRules:
        """The rules by which files are told apart."""
        return PathRules(self.test_globs, self.source_globs, self.generated_globs)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One mainline change with all that was found out about it.

    Dates are in UTC: `author_date` is when the work began (the earliest author date among the change's
    commits), `merge_date` when it came to the mainline. `author` wrote the last commit of the work. What
    needs file contents (lines, issues, problem text, and whether a manifest really changed a dependency) is
    looked up for kept changes and those rejected for `no_issue` only; the lines of all others are None and
    their issues and texts are empty.
    """

    candidate_id: str
    repository: str
    commit: str
    parent: str | None
    tree: str
    shape: Shape
    number: int | None
    subject: str
    author: str
    author_date: datetime
    merge_date: datetime
    reason: MiningReason
    reason_detail: str
    source_files: tuple[bytes, ...]
    test_files: tuple[bytes, ...]
    files_changed: int
    lines_added: int | None
    lines_removed: int | None
    category: Category
    category_rule: CategoryRule
    issues: tuple[IssueLink, ...]
    problem_source: ProblemSource
    problem_text: str
    reverts: str | None
    coding_agent: bool

    @property
    def decision(self) -> str:
        """ "kept" or "rejected"."""
        return "kept" if self.reason is MiningReason.kept else "rejected"


def mine(repository: Repository, tip: str, rules: MiningRules, texts: IssueTexts | None) -> Iterator[Candidate]:
    """One row for every change on the first-parent line that ends at `tip` (a full commit id), oldest first.

    Streams: memory does not grow with the history, but for the numbers of pull requests seen, which reverts
    name.
    """
    miner = _Miner(repository, rules, texts)
    changes = changes_of(walk_mainline(repository, tip), [rules.mainline] if rules.mainline else [])
    while batch := list(islice(changes, _BATCH)):
        yield from miner.judge(batch)


def funnel(candidates: Iterable[Candidate]) -> list[tuple[MiningReason, int]]:
    """How many changes each reason took, in the order in which the reasons are looked at, kept last."""
    counts = Counter(candidate.reason for candidate in candidates)
    return [(reason, counts[reason]) for reason in MiningReason]


class _Miner:
    def __init__(self, repository: Repository, rules: MiningRules, texts: IssueTexts | None) -> None:
        self._repository = repository
        self._rules = rules
        self._paths = rules.paths
        self._texts = texts
        self._commit_of_number: dict[int, str] = {}

    def judge(self, batch: Sequence[Change]) -> Iterator[Candidate]:
        """The rows of several changes; what needs file contents is read for all of them together."""
        sorted_files = [ChangedFiles.of(change.files, self._paths) for change in batch]
        decisions = [
            decide(change, files, self._rules.max_files) for change, files in zip(batch, sorted_files, strict=True)
        ]
        passed = [number for number, decision in enumerate(decisions) if decision.reason is MiningReason.kept]
        gathered = gather(self._repository, [batch[number] for number in passed], self._paths)
        evidence = dict(zip(passed, gathered, strict=True))
        for number, change in enumerate(batch):
            yield self._row(change, sorted_files[number], decisions[number], evidence.get(number))
            if change.number is not None:
                self._commit_of_number[change.number] = change.last.commit

    def _row(self, change: Change, files: ChangedFiles, decision: Decision, evidence: Evidence | None) -> Candidate:
        links: tuple[IssueLink, ...] = ()
        problem = Problem(ProblemSource.commit_message, "")
        if evidence is not None:
            links = self._links(change, evidence)
            problem = problem_of(change, links, self._texts)
            if self._rules.require_issue and not any(link.number for link in links):
                decision = Decision(MiningReason.no_issue, "no issue of this repository is named")
        manifests = bool(files.of_kind(FileKind.dependency))
        category, rule = categorize(files, manifests if evidence is None else evidence.dependencies_changed)
        last = change.last
        return Candidate(
            candidate_id=candidate_id(self._rules.repository, change.number, last.commit),
            repository=self._rules.repository,
            commit=last.commit,
            parent=change.parent,
            tree=last.tree,
            shape=change.shape,
            number=change.number,
            subject=subject_of(last.message),
            author=change.work[-1].author,
            author_date=first_commit_time(change),
            merge_date=merge_time(change),
            reason=decision.reason,
            reason_detail=decision.detail,
            source_files=files.of_kind(FileKind.source),
            test_files=files.of_kind(FileKind.test),
            files_changed=files.count,
            lines_added=None if evidence is None else evidence.lines_added,
            lines_removed=None if evidence is None else evidence.lines_removed,
            category=category,
            category_rule=rule,
            issues=links,
            problem_source=problem.source,
            problem_text=problem.text,
            reverts=self._reverted(change),
            coding_agent=any(shows_coding_agent(commit.author, commit.message) for commit in _all(change)),
        )

    def _links(self, change: Change, evidence: Evidence) -> tuple[IssueLink, ...]:
        texts = [(commit.message, LinkPlace.merge_message) for commit in change.commits]
        texts += [(commit.message, LinkPlace.branch_commit) for merge in change.commits for commit in merge.brought]
        texts.append((evidence.changelog, LinkPlace.changelog))
        found = [
            IssueLink(f"#{number}", number, LinkPlace.changelog, LinkStrength.mention)
            for file in change.files
            if file.new_mode and (number := fragment_number(file.path)) not in (None, change.number)
        ]
        if self._texts is not None:
            pull_request = None if change.number is None else self._texts.pull_request(change.number)
            if pull_request is not None:
                texts.append((pull_request.text, LinkPlace.pull_request))
            for number in self._texts.closed_by(change.number, [commit.commit for commit in _all(change)]):
                found.append(IssueLink(f"#{number}", number, LinkPlace.pull_request, LinkStrength.closing))
        for text, place in texts:
            found += links_in(text, place, self._rules.repository, change.number)
        return tuple(link for link in strongest(found) if not self._is_pull_request(link))

    def _is_pull_request(self, link: IssueLink) -> bool:
        if self._texts is None or link.number is None:
            return False
        return self._texts.issue(link.number) is None and self._texts.pull_request(link.number) is not None

    def _reverted(self, change: Change) -> str | None:
        if not is_revert(change):
            return None
        for commit in _all(change):
            if reverted := reverted_commit(commit.message):
                return reverted
        number = next(filter(None, (reverted_number(commit.message) for commit in _all(change))), None)
        return None if number is None else self._commit_of_number.get(number)


def _all(change: Change) -> Sequence[BranchCommit | MainlineCommit]:
    """Every commit with a message about the change: its own on the mainline, then those that they brought."""
    return [*change.commits, *(commit for merge in change.commits for commit in merge.brought)]


def candidate_id(repository: str, number: int | None, commit: str) -> str:
    """A slug of at most 120 characters that names a change for good: repository, pull request, commit."""
    tail = commit[:10] if number is None else f"{number}-{commit[:10]}"
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", repository)[: _LONGEST_ID - len(tail) - 1]
    return f"{name}-{tail}"
