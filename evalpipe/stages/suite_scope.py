"""Which test files a validation runs of a repository whose whole suite takes too long for each candidate."""

from evalpipe.config import RepositoryConfig
from evalpipe.history import FileKind
from evalpipe.lake import Row
from evalpipe.sandbox import SYMLINK, FileEntry
from evalpipe.stages.bench import Workbench
from evalpipe.stages.mining import path_rules
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
