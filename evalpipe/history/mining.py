"""Looks at every change of a mainline and says why it is or is not a candidate for a task; oldest first, as a stream.

A second look may go on where an earlier one ended: it is told what that one found, and reads only what is new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final

from evalpipe.history.ancestry import WINDOW
from evalpipe.history.candidates import Candidate, MiningRules, candidate_id
from evalpipe.history.categories import Overrides, categorize
from evalpipe.history.coding_agents import shows_coding_agent
from evalpipe.history.decision import ChangedFiles, Decision, MiningReason, decide, is_promising, settle
from evalpipe.history.errors import MainlineRewritten
from evalpipe.history.evidence import Evidence, EvidenceReader
from evalpipe.history.issues import IssueTexts
from evalpipe.history.ledger import Entry, Ledger, Relations
from evalpipe.history.links import IssueLink, LinkPlace, LinkStrength, links_in, strongest
from evalpipe.history.mainline import BranchCommit, MainlineCommit, mainline_authors, raw_differences, walk_mainline
from evalpipe.history.messages import subject_of
from evalpipe.history.paths import FileKind, PathRules, fragment_number
from evalpipe.history.problem import Problem, ProblemSource, problem_of
from evalpipe.history.repository import Repository
from evalpipe.history.shapes import Change, changes_of

MINING_VERSION: Final = 5
"""Goes up with every change of the rules in this folder, so that what was mined by older ones is mined again."""

_NO_PROBLEM: Final = Problem(ProblemSource.commit_message, "")

# So many changes share a git process that reads contents. With more, what it says would not fit into its pipe and it
# would wait; that is also why two batches are under way while the rows of a third are made.
_BATCH: Final = 2048
_UNDER_WAY: Final = 2


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier look found: the mainline commit up to which it holds, and its changes until there in order."""

    until: str
    entries: Iterable[Entry]


class Mining:
    """One look at the first-parent line that ends at `tip` (a full commit id): iterate over it once for its rows.

    `reverted_by` then has the changes that were taken back later, by their commits, with the commit that did so last;
    the earlier look's changes too. Memory grows by some 200 bytes for each change, which a later one may revert or
    repeat. Iterating raises MainlineRewritten when `earlier.until` is not on the line any more.
    """

    def __init__(
        self,
        repository: Repository,
        tip: str,
        rules: MiningRules,
        texts: IssueTexts | None,
        earlier: Earlier | None = None,
    ) -> None:
        self.reverted_by: dict[str, str] = {}
        self._repository = repository
        self._tip = tip
        self._rules = rules
        self._paths = rules.paths
        self._overrides = Overrides(rules.categories)
        self._texts = texts
        self._after = None if earlier is None else earlier.until
        self._ledger = Ledger(() if earlier is None else earlier.entries)

    def __iter__(self) -> Iterator[Candidate]:
        commits = walk_mainline(self._repository, self._tip, self._after)
        authors = []
        if self._after is not None:
            commits = _checked(commits, self._after)
            authors = mainline_authors(self._repository, self._after, WINDOW)
        names = [self._rules.mainline] if self._rules.mainline else []
        differences = partial(raw_differences, self._repository)
        changes = changes_of(commits, names, authors, self._rules.repository, differences)
        waiting: deque[_Batch] = deque()
        try:
            while batch := list(islice(changes, _BATCH)):
                waiting.append(_Batch(self._repository, self._paths, self._rules.max_files, batch))
                if len(waiting) > _UNDER_WAY:
                    yield from self._rows(waiting.popleft())
            while waiting:
                yield from self._rows(waiting.popleft())
            # Most of the memory; whoever writes the rows down still holds this look.
            self._ledger = Ledger()
        finally:
            for left in waiting:
                left.contents.close()

    def _rows(self, batch: _Batch) -> Iterator[Candidate]:
        try:
            evidence = iter(batch.contents.results())
            for place, change in enumerate(batch.changes):
                found = next(evidence) if place in batch.promising else None
                yield self._row(change, batch.files[place], batch.decisions[place], found)
        finally:
            batch.contents.close()

    def _row(self, change: Change, files: ChangedFiles, decision: Decision, evidence: Evidence | None) -> Candidate:
        patch_id = None if evidence is None else evidence.patch_id
        if evidence is not None and evidence.generated:
            files = files.with_generated(evidence.generated)
        relations = self._ledger.relations_of(change, files.source + files.tests, patch_id)
        links: tuple[IssueLink, ...] = ()
        problem = _NO_PROBLEM
        if evidence is not None:
            decision = settle(decision, files, self._rules.max_files, evidence.inline_tests, relations)
            if decision.reason not in (MiningReason.kept, MiningReason.repeat):
                evidence = None
        if evidence is not None:
            links = self._links(change, files, evidence)
            problem = problem_of(change, links, self._texts)
            if decision.reason is MiningReason.kept and self._rules.require_issue and not any(map(self._is_own, links)):
                decision = Decision(MiningReason.no_issue, "no issue of this repository is named")
        if decision.reason is MiningReason.revert:
            for reverted in relations.reverts:
                self.reverted_by[reverted] = change.last.commit
        candidate = self._candidate(change, files, decision, relations, evidence, links, problem)
        self._ledger.add(candidate.entry)
        return candidate

    def _candidate(
        self,
        change: Change,
        files: ChangedFiles,
        decision: Decision,
        relations: Relations,
        evidence: Evidence | None,
        links: tuple[IssueLink, ...],
        problem: Problem,
    ) -> Candidate:
        last = change.commits[-1]
        commits = change.all_commits
        request = change.pull_request
        name = candidate_id(self._rules.repository, change.number, last.commit)
        manifests = FileKind.dependency in files.by_kind
        category, rule = categorize(files, manifests if evidence is None else evidence.dependencies_changed)
        if self._overrides:
            category, rule = self._overrides.applied(name, change, category, rule)
        # By place, in the order of its fields: with their names it would take twice as long.
        return Candidate(
            name,
            self._rules.repository,
            last.commit,
            change.parent,
            last.tree,
            change.shape,
            None if request is None else request.forge,
            None if request is None else request.number,
            change.change_id,
            tuple([one.commit for one in commits[:-1]]) if len(commits) > 1 else (),
            subject_of(last.message),
            last.brought[-1].author if last.brought else last.author,
            datetime.fromtimestamp(change.began, UTC),
            datetime.fromtimestamp(last.commit_time, UTC),
            decision.reason,
            decision.detail,
            files.source,
            files.tests,
            () if evidence is None else evidence.inline_tests,
            files.total,
            None if evidence is None else evidence.lines_added,
            None if evidence is None else evidence.lines_removed,
            None if evidence is None else evidence.patch_id,
            category,
            rule,
            links,
            problem.source,
            problem.text,
            problem.unused,
            relations.reverts[0] if relations.reverts else None,
            relations.repeats,
            _shows_coding_agent(commits),
        )

    def _links(self, change: Change, files: ChangedFiles, evidence: Evidence) -> tuple[IssueLink, ...]:
        texts = [(commit.message, LinkPlace.merge_message) for commit in change.commits]
        texts += [(commit.message, LinkPlace.branch_commit) for commit in change.last.brought]
        texts.append((evidence.changelog, LinkPlace.changelog))
        own = None if change.pull_request is None else change.pull_request.own_reference
        found = [
            IssueLink(f"#{number}", number, LinkPlace.changelog, LinkStrength.mention)
            for path in files.by_kind.get(FileKind.docs, ())
            if path not in files.deleted and (number := fragment_number(path)) is not None and f"#{number}" != own
        ]
        if self._texts is not None:
            pull_request = None if change.number is None else self._texts.pull_request(change.number)
            if pull_request is not None:
                texts.append((pull_request.text, LinkPlace.pull_request))
            for number in self._texts.closed_by(change.number, [commit.commit for commit in change.all_commits]):
                found.append(IssueLink(f"#{number}", number, LinkPlace.pull_request, LinkStrength.closing))
        for text, place in texts:
            if text:
                found += links_in(text, place, self._rules.repository, own, self._rules.jira_projects)
        return tuple(link for link in strongest(found) if not self._is_pull_request(link)) if found else ()

    def _is_pull_request(self, link: IssueLink) -> bool:
        if self._texts is None or link.number is None:
            return False
        return self._texts.issue(link.number) is None and self._texts.pull_request(link.number) is not None

    def _is_own(self, link: IssueLink) -> bool:
        """Whether a link names an issue of this repository's own trackers."""
        return link.number is not None or link.key.rpartition("-")[0] in self._rules.jira_projects


class _Batch:
    """Changes that were sorted by their paths and messages, with the contents of the promising ones on their way."""

    def __init__(self, repository: Repository, paths: PathRules, max_files: int, changes: Sequence[Change]) -> None:
        self.changes = changes
        self.files = [ChangedFiles.of(change, paths) for change in changes]
        self.decisions = [decide(change, files, max_files) for change, files in zip(changes, self.files, strict=True)]
        self.promising = {
            place
            for place, (decision, files) in enumerate(zip(self.decisions, self.files, strict=True))
            if is_promising(decision, files, max_files)
        }
        promising = [change for place, change in enumerate(changes) if place in self.promising]
        self.contents = EvidenceReader(repository, paths, promising)


def _shows_coding_agent(commits: Iterable[BranchCommit | MainlineCommit]) -> bool:
    for commit in commits:  # noqa: SIM110 (a generator for each change costs more than the look)
        if shows_coding_agent(commit.author, commit.message):
            return True
    return False


def _checked(commits: Iterator[MainlineCommit], after: str) -> Iterator[MainlineCommit]:
    """The commits, when the first of them follows `after`."""
    first = next(commits, None)
    if first is None or first.parents[:1] != (after,):
        raise MainlineRewritten(f"{after} is not on the mainline any more; the whole history has to be mined again")
    yield first
    yield from commits
