"""Stage `candidate_commits`: every mainline change of a repository, kept or rejected with its reason.

A second run goes on where the one before ended, when its rows are still there and were mined by the same rules: what
they say, the issues' texts and the version of the mining code. Only what is new is read from git.
"""

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.config import RepositoryConfig
from evalpipe.history import (
    MINING_VERSION,
    Candidate,
    Category,
    CommitMissing,
    Earlier,
    Entry,
    Forge,
    IssueTexts,
    MainlineRewritten,
    Mining,
    MiningReason,
    MiningRules,
    PathRules,
    PullRequest,
    Repository,
    Shape,
    funnel,
    update_mirror,
)
from evalpipe.lake import Spool, arrow_table
from evalpipe.stages.added_tasks import TaskFiles, added_keys, added_rows, stored_tasks
from evalpipe.stages.bench import Workbench
from evalpipe.stages.category_names import Named, category_warnings, named, stored_names
from evalpipe.validation import ValidationClass

TABLE: Final = "candidate_commits"
ADDED: Final = "added"
"""In a funnel: tasks that the team wrote itself."""
_ROWS_AT_ONCE: Final = 4096
_ENTRY_COLUMNS: Final = (
    *("commit", "branch_commits", "forge", "number", "change_id", "patch_id", "source_files", "test_files"),
    *("reverts", "repeats", "reason"),
)


@dataclass(slots=True)
class MiningSummary:
    """What was mined: how many changes fell to each reason, and the ids of the kept ones, oldest first.

    After them come the candidates that the team added, of which there are `added`.
    """

    counts: Counter[MiningReason] = field(default_factory=Counter)
    kept: list[str] = field(default_factory=list)
    added: int = 0
    warnings: list[str] = field(default_factory=list)
    """What the team should look at in its configuration, a sentence each."""

    @property
    def changes(self) -> int:
        """How many changes the mainline has."""
        return self.counts.total()

    def add(self, candidate: Candidate) -> None:
        """Count one more change."""
        self.counts[candidate.reason] += 1
        if candidate.reason is MiningReason.kept:
            self.kept.append(candidate.candidate_id)

    def add_rows(self, rows: pa.Table) -> None:
        """Count rows of the table: changes, and tasks that the team added."""
        changes = rows.filter(~_is_added())
        self.added += len(rows) - len(changes)
        for reason, count in Counter(map(str, changes.column("reason").to_pylist())).items():
            self.counts[MiningReason(reason)] += count
        self.kept += [row["candidate_id"] for row in rows.filter(_is_kept()).to_pylist()]


@dataclass(frozen=True, slots=True)
class HistoryLook:
    """A mainline that is about to be mined.

    The first `known` rows of the stored table hold, and `mining` gives the others; None when there are none.
    """

    repository: Repository
    known: int
    mining: Mining | None
    key: str


# Functions, because a comparison makes pyarrow import pandas: every process of a run would, to begin with.
def _is_added() -> pc.Expression:
    return pc.field("shape") == Shape.added.value


def _is_kept() -> pc.Expression:
    return pc.field("reason") == MiningReason.kept.value


def mine_repository(bench: Workbench, config: RepositoryConfig) -> MiningSummary:
    """Look at every change of a repository's mainline and have one row stored for each. Raises HistoryError."""
    look = look_at_history(bench, config)
    try:
        return _store(bench, config, look)
    except (MainlineRewritten, CommitMissing):
        if not look.known:
            raise
        return _store(bench, config, look_at_history(bench, config, from_start=True))


def summarize(bench: Workbench, config: RepositoryConfig) -> MiningSummary:
    """The same look at every change without a row written, for `evalpipe mine --dry-run`. Raises HistoryError."""
    look = look_at_history(bench, config, from_start=True)
    summary = MiningSummary()
    names: list[Named] = []
    for candidate in look.mining or ():
        summary.add(candidate)
        names += [named(candidate)] if config.categories else ()
    summary.warnings = category_warnings(config, names)
    return summary


def look_at_history(bench: Workbench, config: RepositoryConfig, *, from_start: bool = False) -> HistoryLook:
    """Bring the mirror up to date and see what of its mainline is not mined yet. Raises HistoryError."""
    mirror_path = bench.mirror_path(config.name)
    if config.name in bench.just_fetched:
        bench.just_fetched.discard(config.name)
        mirror = Repository(mirror_path)
    else:
        mirror = update_mirror(bench.workspace.repository_location(config), mirror_path)
    mainline, tip = mirror.mainline_tip(config.mainline)
    rules = mining_rules(config, mainline)
    export = bench.workspace.resolve(config.issues) if config.issues else None
    texts = None if export is None else IssueTexts.load(export)
    key = _mining_key(rules, export)
    stored = None if from_start else _stored(bench, config.name, key)
    if stored is not None and stored.newest == tip:
        return HistoryLook(mirror, stored.changes, None, key)
    if stored is None or stored.before_newest is None:
        return HistoryLook(mirror, 0, Mining(mirror, tip, rules, texts), key)
    # The last change may have grown: a rebase is complete only when another change has followed.
    known = stored.changes - 1
    earlier = Earlier(stored.before_newest, _entries(bench, config.name, known))
    return HistoryLook(mirror, known, Mining(mirror, tip, rules, texts, earlier), key)


def mining_rules(config: RepositoryConfig, mainline: str | None) -> MiningRules:
    """A repository's configuration as the rules by which its `mainline` is mined."""
    return MiningRules(
        repository=config.name,
        mainline=mainline,
        test_globs=config.paths.tests,
        source_globs=config.paths.source,
        generated_globs=config.paths.generated,
        max_files=config.max_files,
        require_issue=config.require_issue,
        jira_projects=config.jira_projects,
        categories={name: Category(category) for name, category in config.categories.items()},
    )


def path_rules(config: RepositoryConfig) -> PathRules:
    """The rules by which a repository's files are told apart."""
    return mining_rules(config, None).paths


def mining_funnel(summary: MiningSummary) -> list[tuple[str, int]]:
    """How many changes were kept, and how many fell to each reason, in the order of the rules; then tasks added."""
    found = [(reason.value, count) for reason, count in funnel(summary.counts.elements())]
    return [*found, (ADDED, summary.added)] if summary.added else found


def stored_mining_funnel(bench: Workbench, repositories: Sequence[str]) -> list[tuple[str, int]]:
    """The funnel of what was mined before, over several repositories."""
    counts: Counter[str] = Counter()
    for name in repositories:
        for chunk in bench.lake.chunks(TABLE, name, columns=["reason", "shape"]):
            counts.update(ADDED if row["shape"] == Shape.added else row["reason"] for row in chunk.to_pylist())
    return [(reason, counts[reason]) for reason in (*MiningReason, ADDED) if counts[reason]]


def stored_mining_warnings(bench: Workbench, config: RepositoryConfig) -> list[str]:
    """What the team should look at in its configuration, after what was mined before."""
    return category_warnings(config, stored_names(bench, config))


def stored_validation_funnel(bench: Workbench, repositories: Sequence[str]) -> list[tuple[str, int]]:
    """How many kept candidates have each validation class, in the order of the classes."""
    counts = Counter(
        row["validation_class"] for name in repositories for row in bench.lake.rows("validated_tasks", name)
    )
    return [(found.value, counts[found.value]) for found in ValidationClass if counts[found.value]]


def _store(bench: Workbench, config: RepositoryConfig, look: HistoryLook) -> MiningSummary:
    summary, name = MiningSummary(), config.name
    tasks = stored_tasks(bench.workspace, name)
    # Every time, because a mirror that was made anew does not have their commits.
    added = [_added_table(bench, config, tasks, look.key)] if tasks else []
    if look.mining is not None:
        with Spool(TABLE, bench.lake.root) as spool, _collector_at_rest():
            newest: list[str] = []
            candidates = iter(look.mining)
            while batch := list(islice(candidates, _ROWS_AT_ONCE)):
                spool.add(_columns(batch, look.key))
                newest = [batch[-1].commit]
            # It reaches all the others, so that they stay when the team rewrites the mainline.
            look.repository.keep(newest)
            chunks = chain(_first_rows(bench, name, look.known), spool.chunks())
            bench.lake.write_tables(TABLE, chain(_with_reverts(chunks, look.mining.reverted_by), added), name)
    elif added_keys(tasks, look.key) != _stored_added_keys(bench, name):
        bench.lake.write_tables(TABLE, chain(_first_rows(bench, name, look.known), added), name)
    for chunk in bench.lake.chunks(TABLE, name, columns=("candidate_id", "reason", "shape")):
        summary.add_rows(chunk)
    summary.warnings = stored_mining_warnings(bench, config)
    return summary


def _added_table(bench: Workbench, config: RepositoryConfig, tasks: Sequence[TaskFiles], key: str) -> pa.Table:
    return arrow_table(TABLE, added_rows(bench.mirror(config.name), tasks, path_rules(config), key))


def _stored_added_keys(bench: Workbench, name: str) -> list[str]:
    chunks = bench.lake.chunks(TABLE, name, columns=("shape", "mining_key"))
    return [row["mining_key"] for chunk in chunks for row in chunk.filter(_is_added()).to_pylist()]


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Hold Python's cycle collector back: rows have no cycles, and it would look through all that is known anew."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _mining_key(rules: MiningRules, export: Path | None) -> str:
    texts = "" if export is None else hashlib.sha256(export.read_bytes()).hexdigest()
    return hashlib.sha256(f"{MINING_VERSION} {rules.digest} {texts}".encode()).hexdigest()


class _Stored(NamedTuple):
    """What is in the lake: how many changes, the commit of the newest, and its parent."""

    changes: int
    newest: str
    before_newest: str | None


def _stored(bench: Workbench, name: str, key: str) -> _Stored | None:
    """The rows that a run can go on from: all were mined with this key."""
    changes, last = 0, pa.table({})
    for table in bench.lake.chunks(TABLE, name, columns=("commit", "parent", "mining_key", "shape")):
        chunk = table.filter(~_is_added())  # they come last, and are no part of the history
        if chunk.column("mining_key").unique().to_pylist() not in ([key], []):
            return None
        changes, last = changes + len(chunk), chunk.slice(max(0, len(chunk) - 1)) if len(chunk) else last
    if not changes:
        return None
    (newest,) = last.to_pylist()
    return _Stored(changes, newest["commit"], newest["parent"])


def _first_rows(bench: Workbench, name: str, count: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    left = count
    for chunk in bench.lake.chunks(TABLE, name, columns=columns) if count else ():
        yield chunk.slice(0, left)
        left -= len(chunk)
        if left <= 0:
            return


def _entries(bench: Workbench, name: str, count: int) -> Iterator[Entry]:
    for chunk in _first_rows(bench, name, count, _ENTRY_COLUMNS):
        for row in chunk.to_pylist():
            yield Entry(
                commits=(*row["branch_commits"], row["commit"]),
                pull_request=PullRequest(Forge(row["forge"]), row["number"]) if row["forge"] else None,
                change_id=row["change_id"],
                patch_id=row["patch_id"],
                files=(*row["source_files"], *row["test_files"]),
                reverts=row["reverts"],
                repeats=row["repeats"],
                kept=row["reason"] == MiningReason.kept,
            )


def _with_reverts(chunks: Iterable[pa.Table], reverted_by: Mapping[str, str]) -> Iterator[pa.Table]:
    """The rows with what was taken back later; a change is known when the last row is."""
    for chunk in chunks:
        if not reverted_by:
            yield chunk
            continue
        rows = chunk.select(["commit", "reverted_by"]).to_pylist()
        values = [reverted_by.get(row["commit"], row["reverted_by"]) for row in rows]
        place = chunk.schema.get_field_index("reverted_by")
        yield chunk.set_column(place, chunk.schema.field(place), pa.array(values, pa.string()))


def _columns(candidates: Sequence[Candidate], key: str) -> dict[str, Sequence[Any]]:
    """Candidates as columns of the table."""
    columns: dict[str, Sequence[Any]] = dict(zip(Candidate._fields, zip(*candidates, strict=True), strict=True))
    columns["issues"] = [
        [{"key": link.key, "found_in": link.found_in, "strength": link.strength} for link in links]
        for links in columns["issues"]
    ]
    columns["unused_texts"] = [
        [{"key": text.key, "fault": text.fault} for text in texts] for texts in columns["unused_texts"]
    ]
    columns["reverted_by"] = [None] * len(candidates)
    columns["mining_key"] = [key] * len(candidates)
    return columns
