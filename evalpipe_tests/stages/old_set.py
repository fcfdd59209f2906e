"""A set that evalpipe froze at its commit e6d2957, with the repository that it came from.

The files below `old_sets/first/` are what that version wrote: two tasks, one of them with a terse text, a path that
is not ASCII, and lines that end with CR LF. They are never written again: a reader that fails on them loses a team's
numbers.
"""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path

from evalpipe.environments import EnvironmentBuilder
from evalpipe.history import update_mirror
from evalpipe_tests.history.builder import Builder, File
from evalpipe_tests.stages.workspaces import FILES, HostPython, TestBench

NAME = "first"
REVISION = "dff63d9c7493e67b951277e62cb431574f878ac408205da5319aa474a7accbb5"
DIGESTS = {
    "clock-1-904fc04e6a": "c264d757b2d87d7d6abcddf80570631826f2442f979179ddc87fef46b218b116",
    "clock-2-d13797bf74": "553068a0e7b33702e959a08232ffaab567af01cc568bc07a7ecfb4dd3901d15c",
}
VERDICT_KEYS = {
    "clock-1-904fc04e6a": "6227fc90c2f0dddb6e18ca6cc7506953f9789d2c8083d09e061890e17319480b",
    "clock-2-d13797bf74": "5c13f7691b399767b3d93071b43822326ddac34746cdd5e2ff75d6298bdce28e",
}
"""Where that version kept the verdict on each task's reference patch in the process sandbox, with grader version 1."""

IMAGE = "sha256:" + "0123456789abcdef" * 4
FOLDER = Path(__file__).parent / "old_sets" / NAME

_CLOCK = b"def noon():\r\n    return %d\r\n\r\n\r\ndef hours():\r\n    return %d\r\n"
_TEST = b"import clock\n\n\ndef test_%s():\n    assert clock.%s() == %d\n"
HISTORY: list[tuple[str, dict[bytes, File]]] = [
    ("Start", {b"clock.py": _CLOCK % (11, 23), b"test_start.py": b"def test_start():\n    pass\n"}),
    ("Show noon as twelve (#1)", {b"clock.py": _CLOCK % (12, 23), b"test_noon.py": _TEST % (b"noon", b"noon", 12)}),
    (
        "Give the day 24 hours (#2)",
        {b"clock.py": _CLOCK % (12, 24), b"sub dir/test_h\xc3\xb6urs.py": _TEST % (b"hours", b"hours", 24)},
    ),
]


class OldImage(HostPython):
    """The Python of these tests, under the digest that the old set names."""

    def locate(self, image_digest: str) -> str:
        assert image_digest == IMAGE
        return super().locate(str(self.folder))

    def exists(self, image_digest: str) -> bool:
        return image_digest == IMAGE and super().exists(str(self.folder))


class OldBench(TestBench):
    """A bench with the image of the old set."""

    @cached_property
    def old_image(self) -> OldImage:
        return OldImage(self.environment)

    @property
    def builder(self) -> EnvironmentBuilder:
        return self.old_image


def lay_old_workspace(root: Path) -> Path:
    """A workspace with the old set, as a team has it after a fresh clone; returns the set's folder."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    builder = Builder(root / "source.git")
    for message, files in HISTORY:
        builder.commit(files, message)
    folder = root / "data" / "task_sets" / NAME
    shutil.copytree(FOLDER, folder)
    return folder


def make_mirror(bench: TestBench) -> None:
    """Bring the repository in, as mining does."""
    update_mirror(str(bench.workspace.root / "source.git"), bench.mirror_path("clock"))
