from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evalpipe.tasks import RunnerSpec, Task
from evalpipe.tasks.record import SampleRecord, TaskSetEntry, canonical_json, revision_of
from evalpipe_tests.tasks.records import task_record

GOLDEN = b"""{
  "author_date": "2026-03-01T10:00:00+00:00",
  "category": "single_file_repair",
  "category_rule": "one source file",
  "coding_agent": false,
  "commit": "0123456789012345678901234567890123456789",
  "environment": {
    "build_key": "%b",
    "cpus": 1.0,
    "image_digest": "sha256:%b",
    "memory_bytes": 1073741824,
    "pids": 256,
    "sandbox": "docker",
    "test_timeout_s": 60.0
  },
  "fail_to_pass": [
    "tests/test_clock.py::test_midnight"
  ],
  "gold_patch_sha256": "fd5fe7866782225d1525c60f869106d5b8bdceeda0bffec647f2172c5298e822",
  "merge_date": "2026-03-02T10:00:00+00:00",
  "number": 12,
  "parent": "9876543210987654321098765432109876543210",
  "pass_to_pass": [
    "tests/test_clock.py::test_noon"
  ],
  "path_globs": {
    "generated": [],
    "source": [],
    "tests": []
  },
  "problem": {
    "original": "Midnight is shown wrongly.\\n",
    "source": "issue",
    "terse": null
  },
  "provisional": false,
  "quarantined": [],
  "repository": "clock",
  "runner": {
    "arguments": [],
    "name": "pytest",
    "python": "python3"
  },
  "schema_version": 1,
  "shape": "squash",
  "task_id": "clock-12-0123456789",
  "test_files": [
    "tests/test_clock.py"
  ],
  "test_patch_sha256": "62f5e384201aa072e603a6fda0fed9815984b2de8e3d1f75dc945ac315271ace",
  "title": "Show \\u201c24:00\\u201d as midnight",
  "validated_on": [
    "2026-04-01",
    "2026-04-02"
  ]
}
""" % (b"b" * 64, b"d" * 64)


def test_record_has_one_json_form() -> None:
    assert canonical_json(task_record()) == GOLDEN


def test_json_form_reads_back_as_the_same_record() -> None:
    task = task_record(title="caf\u00e9 \x00 \U0001f600", number=None, quarantined=("tests/x.py::y[\\xff]",))
    assert Task.model_validate_json(canonical_json(task)) == task


@pytest.mark.parametrize(
    "change",
    [
        {"title": "other"},
        {"fail_to_pass": ("tests/test_clock.py::other",)},
        {"provisional": True},
        {"gold_patch_sha256": "0" * 64},
        {"validated_on": ("2026-04-01",)},
        {"interface_named": True},
        {"runner": RunnerSpec(name="pytest", python="python3", prepare=("make",))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_json_form_depends_on_every_field(change: dict[str, Any]) -> None:
    assert canonical_json(task_record(**change)) != canonical_json(task_record())


@pytest.mark.parametrize(
    "wrong",
    [
        {"fail_to_pass": ()},
        {"schema_version": 2},
        {"task_id": "a/b"},
        {"task_id": "-x"},
        {"task_id": "x" * 121},
        {"surprise": 1},
    ],
    ids=str,
)
def test_record_refuses_what_is_no_task(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        task_record(**wrong)


def test_revision_depends_on_name_rule_tasks_and_order() -> None:
    one, two = TaskSetEntry(task_id="a", sha256="1"), TaskSetEntry(task_id="b", sha256="2")
    revisions = {
        revision_of("set", "all", (one, two)),
        revision_of("set", "all", (two, one)),
        revision_of("set", "all", (one,)),
        revision_of("other", "all", (one, two)),
        revision_of("set", "newest", (one, two)),
    }
    assert len(revisions) == 5
    assert revision_of("set", "all", (one,), SampleRecord(size=1, seed=0, strata=())) not in revisions
    assert revision_of("set", "all", (one,)) == "d1183de0737241b866014261bb91e06f5d27940b077752059cd3e28b12d609ad"
