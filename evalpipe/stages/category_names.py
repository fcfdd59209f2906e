"""Names under `categories` in a repository's file that mean no change: the team should hear of a slip of the pen."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from evalpipe.config import RepositoryConfig
from evalpipe.history import Candidate, Category, Overrides, Shape
from evalpipe.stages.bench import Workbench

_COLUMNS: Final = ("candidate_id", "number", "commit", "branch_commits", "shape")
Named = tuple[str, int | None, Sequence[str]]
"""A change by all that it can be called: candidate id, pull request, and its commits on the mainline."""


def named(candidate: Candidate) -> Named:
    """What a change can be called."""
    return _named(candidate.candidate_id, candidate.number, candidate.commit, candidate.branch_commits, candidate.shape)


def stored_names(bench: Workbench, config: RepositoryConfig) -> Iterator[Named]:
    """What the changes that were mined can be called."""
    for chunk in bench.lake.chunks("candidate_commits", config.name, columns=_COLUMNS):
        for row in chunk.to_pylist():
            yield _named(*(row[column] for column in _COLUMNS))


def category_warnings(config: RepositoryConfig, changes: Iterable[Named]) -> list[str]:
    """One sentence for each name that means none of `changes`, in the order of the file."""
    overrides = Overrides({name: Category(category) for name, category in config.categories.items()})
    left = dict.fromkeys(config.categories)
    for candidate_id, number, commits in changes if left else ():
        for name in overrides.names_of(candidate_id, number, commits):
            left.pop(name, None)
    return [
        f"data/repos/{config.name}.yaml: {name!r} under `categories` means no change of the mainline, so it does "
        "nothing; correct it (a candidate id, a pull request as '#12', or a commit of the mainline) or remove the line"
        for name in left
    ]


def _named(
    candidate_id: str, number: int | None, commit: str, branch_commits: Sequence[str] | None, shape: str
) -> Named:
    is_rebase = shape == Shape.rebase
    return candidate_id, number, (*(branch_commits or ()), commit) if is_rebase else (commit,)
