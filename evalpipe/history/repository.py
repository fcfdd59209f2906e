"""A repository to mine, as a bare mirror inside the lake that only evalpipe writes.

The mirror holds every branch of its source and whatever was mined from it: nothing in it is ever garbage
collected, so a task that was frozen from a commit stays readable after the team rewrites its branches.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evalpipe.history.diffs import diff_trees
from evalpipe.history.errors import (
    EmptyRepository,
    HistoryError,
    MainlineMissing,
    NotARepository,
    ShallowRepository,
    SourceUnreachable,
)
from evalpipe.history.git_command import GitCommand, GitResult, incomplete, missing_object, without_credentials
from evalpipe.history.objects import ObjectReader, checked_id

_BRANCHES: Final = "refs/heads/"
_KEPT: Final = "refs/evalpipe/kept/"
# What HEAD of a mirror names when HEAD of its source names no branch, as in a checkout made by a CI system.
_NO_DEFAULT_BRANCH: Final = "refs/evalpipe/no-default-branch"
_OF_A_SHALLOW_SOURCE: Final = "because shallow roots are not allowed to be updated"
_REMOTE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/:]+:(?!//)")
_UPLOAD_PACK: Final = "git -c safe.directory=* upload-pack"


class Repository(ObjectReader):
    """A git repository on this machine, opened for reading (and, when it is a mirror, for `keep`)."""

    def __init__(self, path: Path, scratch_folder: Path | None = None) -> None:
        """Open a bare repository or a checkout by its folder; raises NotARepository.

        `scratch_folder` is where `ScratchObjects` of this repository make their temporary directories; by default
        the system's place for temporary files.
        """
        self.path = path
        self.scratch_folder = scratch_folder
        git_dir = path / ".git" if (path / ".git").exists() else path
        probe = GitCommand(git_dir.absolute()).attempt("rev-parse", "--show-object-format", "--absolute-git-dir")
        if probe.status != 0:
            raise _not_a_repository(str(path), probe.stderr)
        object_format, _, absolute = os.fsdecode(probe.stdout).partition("\n")
        super().__init__(GitCommand(Path(absolute.removesuffix("\n"))), object_format)

    def branches(self) -> list[str]:
        """Names of all branches, sorted."""
        listing = self.command.run("for-each-ref", "--format=%(refname)", _BRANCHES)
        return sorted(line.removeprefix(_BRANCHES) for line in os.fsdecode(listing).splitlines())

    def mainline_tip(self, mainline: str | None) -> tuple[str, str]:
        """(branch name, commit id) of the branch to mine; None asks for the source's own default branch.

        Raises MainlineMissing, which lists the branches that exist, and EmptyRepository.
        """
        branches = self.branches()
        if not branches:
            raise EmptyRepository(f"{self.path} has no branch with a commit; commit or push something first")
        name = mainline if mainline is not None else self._default_branch()
        if name not in branches:
            wanted = f"has no branch {name!r}" if name else "names no default branch"
            shown = ", ".join(branches[:20]) + (f" and {len(branches) - 20} more" if len(branches) > 20 else "")
            raise MainlineMissing(f"{self.path} {wanted}; set `mainline` to one of: {shown}")
        commit = self.command.run("rev-parse", "--verify", f"{_BRANCHES}{name}^{{commit}}")
        return name, commit.decode("ascii").strip()

    def keep(self, commits: Iterable[str]) -> None:
        """Hold on to these commits of a mirror for good, also when no branch reaches them any more."""
        with _exclusive(_lock_of(self.path)):
            self._keep(commits)

    def _keep(self, commits: Iterable[str]) -> None:
        listing = self.command.run("for-each-ref", "--format=%(refname)", _KEPT).decode("ascii")
        kept = {line.removeprefix(_KEPT) for line in listing.splitlines()}
        new = [commit for commit in dict.fromkeys(map(checked_id, commits)) if commit not in kept]
        if new:
            orders = "".join(f"update {_KEPT}{commit}\0{commit}\0\0" for commit in new)
            self.command.run("update-ref", "-z", "--stdin", stdin=orders.encode("ascii"))
            self.command.run("pack-refs", "--all")

    def adopt(self, source: ObjectReader, commit: str) -> None:
        """Take a commit that was made in another git directory, with all that it reaches, into a mirror for good."""
        made = "refs/heads/made"
        source.command.run("update-ref", made, checked_id(commit))
        with _exclusive(_lock_of(self.path)):
            self.command.run(
                "fetch",
                f"--upload-pack={_UPLOAD_PACK}",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-auto-gc",
                "--",
                str(source.command.git_dir),
                f"{made}:{_KEPT}{commit}",
            )

    def diff(self, old: str, new: str, paths: Iterable[bytes] | None = None) -> bytes:
        """The robust patch between two commits or trees; see `diffs.diff_trees`."""
        return diff_trees(self.command, old, new, paths)

    def _default_branch(self) -> str:
        head = self.command.attempt("symbolic-ref", "--quiet", "HEAD")
        target = os.fsdecode(head.stdout).strip()
        return target.removeprefix(_BRANCHES) if target.startswith(_BRANCHES) else ""


@dataclass(frozen=True, slots=True)
class _Source:
    """What a source says about itself before anything is fetched."""

    name: str
    default_branch: str | None
    tips: Mapping[str, str]
    object_format: str
    transport: tuple[str, ...]

    @property
    def shown(self) -> str:
        return without_credentials(self.name)


def update_mirror(source: str, mirror: Path) -> Repository:
    """Bring all branches of `source` (a path or a URL) into the bare repository `mirror`, made if needed.

    Branches that were rewritten or deleted at the source are so in the mirror too; commits that were
    `keep`-ed stay. A call that was killed half way is repaired by the next one; calls for one mirror wait for
    each other. Raises NotARepository, EmptyRepository, ShallowRepository, ObjectMissing or SourceUnreachable.
    """
    mirror.parent.mkdir(parents=True, exist_ok=True)
    described = _describe(source)
    partial = mirror.with_name(mirror.name + ".partial")
    with _exclusive(_lock_of(mirror)) as lock:
        if mirror.exists():
            _remove_leftovers(mirror)
            repository = Repository(mirror)
            _fetch(repository, described, lock)
            return repository
        shutil.rmtree(partial, ignore_errors=True)
        GitCommand(None).run(
            "init",
            "--quiet",
            "--bare",
            "--template=",
            f"--object-format={described.object_format}",
            str(partial.absolute()),
        )
        _fetch(Repository(partial), described, lock)
        partial.rename(mirror)
        return Repository(mirror)


def source_tip(source: str, mainline: str | None) -> str | None:
    """The commit id of the branch to mine at `source` (a path or a URL), which is asked and not fetched.

    None for the mainline means the source's own default branch. None is returned when there is no such branch.
    Raises NotARepository, EmptyRepository and SourceUnreachable.
    """
    described = _describe(source)
    return described.tips.get(mainline or described.default_branch or "")


def _describe(source: str) -> _Source:
    path = Path(source)
    transport: tuple[str, ...]
    if path.exists():
        name, transport = str(path.absolute()), (f"--upload-pack={_UPLOAD_PACK}",)
    elif _REMOTE_NAME.match(source):
        name, transport = source, ()
    else:
        raise NotARepository(f"{source} does not exist; set `source` to the path or URL of a git repository")
    answer = GitCommand(None).attempt("ls-remote", *transport, "--symref", "--", name, "HEAD", f"{_BRANCHES}*")
    if answer.status != 0:
        raise _fetch_error(without_credentials(name), answer)
    default, tips = None, dict[str, str]()
    for line in os.fsdecode(answer.stdout).splitlines():
        value, _, ref = line.partition("\t")
        # The pattern HEAD is met by refs/remotes/origin/HEAD too, which every ordinary clone has.
        if ref == "HEAD" and value.startswith("ref: "):
            default = value.removeprefix("ref: ").removeprefix(_BRANCHES)
        elif ref.startswith(_BRANCHES):
            tips[ref.removeprefix(_BRANCHES)] = value
    if not tips:
        raise EmptyRepository(
            f"{without_credentials(name)} has no branch with a commit; commit or push something first"
        )
    object_format = "sha1" if len(next(iter(tips.values()))) == 40 else "sha256"
    return _Source(name, default, tips, object_format, transport)


def _fetch(repository: Repository, source: _Source, lock: int) -> None:
    result = repository.command.attempt(
        "fetch",
        *source.transport,
        "--quiet",
        "--prune",
        "--no-write-fetch-head",
        "--no-auto-gc",
        # With it, a walk need not read every commit before it can give the oldest.
        "--write-commit-graph",
        "--no-recurse-submodules",
        "--",
        source.name,
        f"+{_BRANCHES}*:{_BRANCHES}*",
        pass_fds=(lock,),
    )
    # Branches of a shallow source are passed over with a warning, and git calls that a success.
    if result.status != 0 or _OF_A_SHALLOW_SOURCE in result.stderr:
        raise _fetch_error(source.shown, result)
    default = f"{_BRANCHES}{source.default_branch}" if source.default_branch else _NO_DEFAULT_BRANCH
    repository.command.run("symbolic-ref", "HEAD", default)


def _fetch_error(source: str, result: GitResult) -> HistoryError:
    complaint = result.stderr.strip()
    if _OF_A_SHALLOW_SOURCE in complaint:
        return ShallowRepository(
            f"{source} is a shallow clone, so its older changes cannot be read; run `git fetch --unshallow` in it"
        )
    if "does not appear to be a git repository" in complaint or "not a git repository" in complaint:
        return _not_a_repository(source, complaint)
    oid = missing_object(complaint)
    if oid is not None:
        return incomplete(source, oid)
    return SourceUnreachable(
        f"cannot fetch from {source}; check that it is reachable and complete, with the credentials "
        f"of this machine. git says: {complaint}"
    )


def _not_a_repository(source: str, complaint: str) -> NotARepository:
    return NotARepository(
        f"{source} is not a git repository; set `source` to the path or URL of one. git says: {complaint.strip()}"
    )


def _remove_leftovers(mirror: Path) -> None:
    """Take away what a killed git left behind; safe, as only the caller may write here."""
    for leftover in [
        *mirror.glob("*.lock"),
        *mirror.glob("refs/**/*.lock"),
        *mirror.glob("objects/pack/tmp_*"),
        *mirror.glob("objects/info/**/*.lock"),
        *mirror.glob("objects/info/**/tmp_*"),
    ]:
        leftover.unlink()
    for quarantine in mirror.glob("objects/tmp_objdir-*"):
        shutil.rmtree(quarantine)


def _lock_of(mirror: Path) -> Path:
    return mirror.with_name(mirror.name + ".lock")


@contextmanager
def _exclusive(path: Path) -> Iterator[int]:
    """Hold a lock on a file; git inherits it, so that a fetch that outlives its parent is waited for too."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
