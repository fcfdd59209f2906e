"""Commits that evalpipe makes for changes that a history does not hold: the same input gives the same commit."""

from __future__ import annotations

from datetime import UTC, datetime

from evalpipe.history.errors import CommitMissing
from evalpipe.history.instance_repository import fixed_commit
from evalpipe.history.mainline import seconds_of
from evalpipe.history.objects import checked_id
from evalpipe.history.repository import Repository
from evalpipe.history.scratch import ScratchObjects


def add_commit(repository: Repository, scratch: ScratchObjects, tree: str, parent: str, message: str, day: str) -> str:
    """Commit a tree of `scratch` on top of `parent` and take it into the mirror for good; returns the commit's id.

    `scratch` borrows from `repository`. Author, committer and both dates (the start of `day`, ISO, in UTC) are fixed,
    so that everyone who adds the same change has the same commit. Nothing is written when it is there already.
    """
    when = f"{day}T00:00:00+0000"
    commit = fixed_commit(scratch.command, checked_id(tree), message, when, checked_id(parent))
    repository.adopt(scratch, commit)
    return commit


def commit_day(repository: Repository, commit: str) -> str:
    """The day (ISO, UTC) of a commit, given by its full id, by its committer's date. Raises CommitMissing."""
    found = repository.command.attempt("rev-parse", "--verify", "--quiet", f"{checked_id(commit)}^{{commit}}")
    # A tag has an id too, and means another one.
    if found.stdout.decode("ascii").strip() != commit:
        raise CommitMissing(f"{commit} is not a commit in {repository.command.git_dir}")
    seconds = seconds_of(repository.command.run("show", "--no-patch", "--format=%ct", commit).strip())
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
