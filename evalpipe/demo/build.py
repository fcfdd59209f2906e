"""Builds the demo repository from data/demo: the same commit ids on every machine and with every git.

What the history is stands in history.toml and its patches (see script.py). This module only replays it with git
plumbing through an index of its own, with no configuration of the machine or the user in force. A tree is never
merged by git's merge machinery, which differs from version to version: a branch is its own patches, in order, and
merging it lays them over the tip of the other side.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from evalpipe.demo.script import HISTORY_FILE, MAINLINE, Person, Step, StepKind, load_script

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
STAMP_FILE = "evalpipe-demo-source"


class DemoBuildError(Exception):
    """A step of data/demo/history.toml could not be carried out; the message names it."""


def build_demo_repository(source: Path, destination: Path) -> str:
    """Builds the repository described in ``source`` (data/demo) at ``destination`` and returns the mainline tip id.

    The repository has a work tree checked out at ``main``. When ``destination`` was built from the same text
    already, nothing is done; anything else that lies there is replaced, a half-built one included, and the
    replacement is one rename. Raises DemoScriptError when the text is not understood and DemoBuildError when a
    patch does not apply.
    """
    digest = source_digest(source)
    if (tip := _built_tip(destination, digest)) is not None:
        return tip
    destination.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=f".{destination.name}-", dir=destination.parent))
    try:
        fresh = workshop / "repository"
        tip = _Builder(source, fresh, workshop).build()
        (fresh / ".git" / STAMP_FILE).write_text(f"{digest}\n{tip}\n", encoding="ascii")
        if destination.exists():
            destination.replace(workshop / "replaced")
        fresh.replace(destination)
    finally:
        shutil.rmtree(workshop)
    return tip


def source_digest(source: Path) -> str:
    """SHA-256 over history.toml and the patches it names: what the built repository depends on."""
    digest = hashlib.sha256((source / HISTORY_FILE).read_bytes())
    for step in load_script(source).steps:
        if step.patch is not None:
            digest.update(step.patch.encode() + b"\0" + hashlib.sha256((source / step.patch).read_bytes()).digest())
    return digest.hexdigest()


def plumbing_environment(home: Path) -> dict[str, str]:
    """The environment for git in which no configuration of the machine or the user is in force.

    ``home`` is an empty directory: git before 2.32 does not know GIT_CONFIG_GLOBAL.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _built_tip(destination: Path, digest: str) -> str | None:
    """The tip of a finished build of the same text, or None."""
    try:
        stamp = (destination / ".git" / STAMP_FILE).read_text(encoding="ascii").split()
        tip = (destination / ".git" / "refs" / "heads" / MAINLINE).read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return tip if stamp == [digest, tip] else None


@dataclass
class _Branch:
    """A line of work: its tip, and the patches that are its own since it left the mainline."""

    tip: str
    patches: list[str] = field(default_factory=list)


class _Builder:
    """Replays the steps of one script into a new repository."""

    def __init__(self, source: Path, repository: Path, workshop: Path) -> None:
        self._source = source
        self._repository = repository
        self._script = load_script(source)
        home = workshop / "home"
        home.mkdir()
        self._environment = plumbing_environment(home)
        self._index = workshop / "index"
        self._commits: dict[str, str] = {}
        self._branches: dict[str, _Branch] = {}

    def build(self) -> str:
        self._repository.mkdir()
        self._git("init", "--quiet", "--template=")
        self._git("symbolic-ref", "HEAD", f"refs/heads/{MAINLINE}")
        for step in self._script.steps:
            try:
                self._carry_out(step)
            except subprocess.CalledProcessError as error:
                complaint = error.stderr.decode(errors="replace").strip()
                raise DemoBuildError(
                    f"{self._source / HISTORY_FILE}, step {step.key!r}: git {error.cmd[1]} failed: {complaint}"
                ) from error
        tip = self._branches[MAINLINE].tip
        self._git("update-ref", f"refs/heads/{MAINLINE}", tip)
        self._git("reset", "--quiet", "--hard")
        return tip

    def _carry_out(self, step: Step) -> None:
        mainline = self._branches.get(MAINLINE)
        if step.do is StepKind.COMMIT:
            branch = self._branches.get(step.branch)
            if branch is None:
                branch = self._branches[step.branch] = _Branch(mainline.tip if mainline else "")
            parents = [branch.tip] if branch.tip else []
            patches = [step.patch] if step.patch is not None else []
            branch.tip = self._commit(step, parents, patches)
            branch.patches += patches
            return
        assert mainline is not None  # the script is checked: a merge is never its first step
        branch = self._branches[step.branch]
        if step.do is StepKind.MERGE:
            mainline.tip = self._commit(step, [mainline.tip, branch.tip], branch.patches)
            del self._branches[step.branch]
        elif step.do is StepKind.BACK_MERGE:
            tree = self._tree(mainline.tip, branch.patches)
            branch.tip = self._commit_tree(step, [branch.tip, mainline.tip], tree)
        else:
            mainline.tip = branch.tip
            del self._branches[step.branch]

    def _commit(self, step: Step, parents: list[str], patches: list[str]) -> str:
        return self._commit_tree(step, parents, self._tree(parents[0] if parents else EMPTY_TREE, patches))

    def _tree(self, base: str, patches: list[str]) -> str:
        """The id of the base's tree with the patches laid over it."""
        self._git("read-tree", base if base != EMPTY_TREE else "--empty")
        for patch in patches:
            self._git("apply", "--cached", "--whitespace=nowarn", str((self._source / patch).resolve()))
        return self._git("write-tree")

    def _commit_tree(self, step: Step, parents: list[str], tree: str) -> str:
        message = step.message
        for key, commit in self._commits.items():
            message = message.replace(f"{{commit:{key}}}", commit)
        author, committer = self._script.people[step.author], self._script.people[step.committer]
        identity = _identity("AUTHOR", author, step.authored) | _identity("COMMITTER", committer, step.committed)
        arguments = [argument for parent in parents for argument in ("-p", parent)]
        commit = self._git("commit-tree", tree, *arguments, stdin=message.encode(), extra=identity)
        self._commits[step.key] = commit
        return commit

    def _git(self, *arguments: str, stdin: bytes = b"", extra: dict[str, str] | None = None) -> str:
        environment = self._environment | {
            "GIT_DIR": str(self._repository / ".git"),
            "GIT_WORK_TREE": str(self._repository),
        }
        if arguments[0] != "reset":
            environment["GIT_INDEX_FILE"] = str(self._index)
        done = subprocess.run(
            ["git", *arguments],
            cwd=self._repository,
            env=environment | (extra or {}),
            input=stdin,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("ascii").strip()


def _identity(role: str, person: Person, when: str) -> dict[str, str]:
    return {
        f"GIT_{role}_NAME": person.name,
        f"GIT_{role}_EMAIL": person.email,
        f"GIT_{role}_DATE": when,
    }
