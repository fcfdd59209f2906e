"""Lays out the two sides of a change of the demo repository and runs its suite on them, for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PLUGIN_FOLDER = Path(__file__).parent
PYTHON = sys.executable
CUT_OFF = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--net")
"""Runs a command without network, where the kernel allows that."""


@dataclass(frozen=True)
class Run:
    """One run of the suite: outcome by node id, failure texts, and the modules that could not be imported."""

    outcomes: dict[str, str]
    texts: dict[str, str]
    not_collected: frozenset[str]

    def having(self, outcome: str) -> set[str]:
        return {test for test, found in self.outcomes.items() if found == outcome}


def git(repository: Path, *arguments: str) -> bytes:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=repository, env=environment, capture_output=True, check=True)
    return done.stdout


def changed_files(repository: Path, base: str, commit: str) -> dict[str, str]:
    """Path -> status letter (A, M, D) between two commits; a rename is a deletion and an addition."""
    fields = git(repository, "diff", "--name-status", "--no-renames", "-z", base, commit).decode().split("\0")
    return dict(zip(fields[1::2], fields[0::2], strict=False))


def is_test(path: str) -> bool:
    return path.startswith("tests/")


class Workbench:
    """A scratch folder in which trees are laid out, one at a time."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self._repository = repository
        self._folder = folder

    def run_before(self, base: str, commit: str, patch: Path | None = None) -> Run:
        """The parent tree, an agent's patch if there is one, and the change's test files over it."""
        tree = self._lay_out(base)
        if patch is not None:
            subprocess.run(["git", "apply", str(patch)], cwd=tree, check=True, capture_output=True, env=_no_repo(tree))
        for path, status in changed_files(self._repository, base, commit).items():
            if not is_test(path):
                continue
            if status == "D":
                (tree / path).unlink(missing_ok=True)
            else:
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_bytes(git(self._repository, "show", f"{commit}:{path}"))
        return run_suite(tree)

    def run_after(self, commit: str, *, without_network: bool = False) -> Run:
        return run_suite(self._lay_out(commit), CUT_OFF if without_network else ())

    def _lay_out(self, commit: str) -> Path:
        tree = Path(tempfile.mkdtemp(dir=self._folder))
        archive = git(self._repository, "archive", "--format=tar", commit)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
        return tree


def run_suite(tree: Path, prefix: tuple[str, ...] = ()) -> Run:
    report = tree.with_suffix(".json")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GIT_"))}
    environment |= {
        "EVALPIPE_DEMO_OUTCOMES": str(report),
        "PYTHONPATH": str(PLUGIN_FOLDER),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        # One test passes only where it is still the same day: evalpipe's stress pass is to find it.
        "TZ": "UTC",
    }
    command = [*prefix, PYTHON, "-m", "pytest", "-q", "-p", "outcomes_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--continue-on-collection-errors"], cwd=tree, env=environment, capture_output=True, timeout=60
    )
    assert done.returncode in (0, 1, 2), done.stdout.decode(errors="replace")
    data = json.loads(report.read_text(encoding="utf-8"))
    return Run(data["outcomes"], data["texts"], frozenset(data["not_collected"]))


def _no_repo(tree: Path) -> dict[str, str]:
    """git apply must not find a repository around the tree: it would skip paths outside of it."""
    return os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent), "GIT_CONFIG_GLOBAL": os.devnull}
