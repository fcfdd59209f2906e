"""Which test files a validation runs of a repository whose whole suite takes too long for each candidate.

And whether that is right: a tenth of the candidates runs the whole suite, and shows what the others would have missed.
"""

import os
from dataclasses import dataclass

from evalpipe.config import RepositoryConfig
from evalpipe.history import FileKind
from evalpipe.lake import Row
from evalpipe.sandbox import SYMLINK, FileEntry
from evalpipe.stages.bench import Workbench
from evalpipe.stages.mining import path_rules
from evalpipe.tasks import read_files
from evalpipe.validation.affected import affected_test_files, in_whole_suite_sample


def scope_of(
    bench: Workbench, config: RepositoryConfig, candidate: Row, after: list[FileEntry]
) -> tuple[bytes, ...] | None:
    """The test files to run for a candidate whose change made the tree `after`; None for the whole suite."""
    mirror = bench.mirror(config.name)
    old, new = mirror.read_tree(candidate["parent"]), mirror.read_tree(candidate["commit"])
    changed = [path for path in {*old, *new} if old.get(path) != new.get(path)]
    rules = path_rules(config)
    return affected_test_files(
        {entry.path: entry.data for entry in after if entry.mode != SYMLINK},
        changed,
        lambda path: rules.kind_of(path) is FileKind.test,
    )


def wants_affected(config: RepositoryConfig, candidate_id: str) -> bool:
    """Whether a candidate runs only what its change can reach: as configured, but for the sample of whole suites."""
    return config.validation.suite == "affected" and not in_whole_suite_sample(candidate_id)


@dataclass(frozen=True, slots=True)
class ScopeCheck:
    """What the sample of whole suites shows of a repository's `affected` scope.

    `looked_at` candidates ran the whole suite; `missed` has, by candidate, the fail-to-pass tests that its scope would
    not have run. Tests whose ids name no file (Go, Java) cannot be looked at.
    """

    looked_at: int
    missed: dict[str, list[str]]


def check_scope(bench: Workbench, config: RepositoryConfig) -> ScopeCheck:
    """Compare the sample's fail-to-pass tests with the scope that their candidates would have had. Runs nothing."""
    candidates = {row["candidate_id"]: row for row in bench.lake.rows("candidate_commits", config.name)}
    mirror = bench.mirror(config.name)
    looked_at, missed = 0, {}
    for row in bench.lake.rows("validated_tasks", config.name):
        candidate = candidates.get(row["candidate_id"])
        if candidate is None or row["suite_files"] is not None or not in_whole_suite_sample(row["candidate_id"]):
            continue
        tree = mirror.read_tree(candidate["commit"])
        files = {test: os.fsencode(test.partition("::")[0]) for test in row["fail_to_pass"]}
        told = {test: path for test, path in files.items() if path in tree}
        if not told:
            continue
        after = [FileEntry(file.path, file.mode, file.data) for file in read_files(mirror, tree)]
        scope = scope_of(bench, config, candidate, after)
        looked_at += 1
        outside = [test for test, path in told.items() if scope is not None and path not in scope]
        if outside:
            missed[row["candidate_id"]] = outside
    return ScopeCheck(looked_at, missed)
