"""Task records that tests freeze, load and prompt with."""

from __future__ import annotations

import hashlib
from typing import Any

from evalpipe.tasks import EnvironmentSpec, PathGlobs, Problem, RunnerSpec, Task, TaskWithPatches

GOLD_PATCH = b"gold patch: caf\xe9\r\n"
TEST_PATCH = b"test patch"


def task_record(**fields: Any) -> Task:
    """A whole task record; `fields` replace some of it."""
    values: dict[str, Any] = {
        "task_id": "clock-12-0123456789",
        "repository": "clock",
        "number": 12,
        "title": "Show “24:00” as midnight",
        "commit": "0123456789" * 4,
        "parent": "9876543210" * 4,
        "author_date": "2026-03-01T10:00:00+00:00",
        "merge_date": "2026-03-02T10:00:00+00:00",
        "shape": "squash",
        "category": "single_file_repair",
        "category_rule": "one source file",
        "coding_agent": False,
        "problem": Problem(source="issue", original="Midnight is shown wrongly.\n"),
        "fail_to_pass": ("tests/test_clock.py::test_midnight",),
        "pass_to_pass": ("tests/test_clock.py::test_noon",),
        "quarantined": (),
        "test_files": ("tests/test_clock.py",),
        "path_globs": PathGlobs(),
        "runner": RunnerSpec(name="pytest", python="python3"),
        "environment": EnvironmentSpec(
            build_key="b" * 64,
            image_digest="sha256:" + "d" * 64,
            sandbox="docker",
            memory_bytes=1 << 30,
            cpus=1.0,
            pids=256,
            test_timeout_s=60.0,
        ),
        "provisional": False,
        "validated_on": ("2026-04-01", "2026-04-02"),
        "gold_patch_sha256": hashlib.sha256(GOLD_PATCH).hexdigest(),
        "test_patch_sha256": hashlib.sha256(TEST_PATCH).hexdigest(),
    }
    return Task(**{**values, **fields})


def with_patches(**fields: Any) -> TaskWithPatches:
    """A task record beside its two patches."""
    return TaskWithPatches(task_record(**fields), GOLD_PATCH, TEST_PATCH)
