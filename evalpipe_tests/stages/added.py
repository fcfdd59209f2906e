"""A task of the team's own for the workspace of `workspaces`: its patches are made beside the repository."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalpipe_tests.history.builder import Builder, File, git

TEST: dict[bytes, File] = {
    b"tests/test_midnight.py": b"import clock\n\n\ndef test_midnight():\n    assert clock.noon() == 0\n"
}
PRODUCT: dict[bytes, File] = {b"clock.py": b"def noon():\n    return 0\n\n\ndef hours():\n    return 24\n"}


@dataclass
class TaskFolder:
    """A folder that somebody wrote a task into, outside of `data/`."""

    source: Path
    folder: Path
    fields: dict[str, str] = field(default_factory=dict)

    def write(self, tests: Mapping[bytes, File] = TEST, product: Mapping[bytes, File] = PRODUCT) -> Path:
        """Write the patches and the task file against the tip of the source; returns the task file."""
        base = git(self.source, "rev-parse", "main").decode().strip()
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, files in (("test.patch", tests), ("reference.patch", product)):
            (self.folder / name).write_bytes(self.patch(base, files))
        defaults = {
            "repository": "clock",
            "id": "midnight",
            "base": base,
            "title": "Begin the day at midnight",
            "problem": "|\n  The day begins at noon, and it should begin at midnight.",
            "test_patch": "test.patch",
            "reference_patch": "reference.patch",
            "category": "single_file_repair",
            "date": "2026-05-31",
        }
        file = self.folder / "task.yaml"
        lines = {name: value for name, value in {**defaults, **self.fields}.items() if value}
        file.write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
        return file

    def patch(self, base: str, files: Mapping[bytes, File]) -> bytes:
        """The difference that `files` make to `base`, as git writes it."""
        copy = self.folder.parent / "copy.git"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.source, copy)
        builder = Builder(copy)
        commit = builder.commit(files, parents=[base], branch=None) if files else base
        return git(copy, "diff", "--binary", "--full-index", base, commit)
