"""A synthetic sweep of any size, made in Arrow: rows of graded_results as a pipeline would leave them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from evalpipe.lake.schemas import GRADED_RESULTS
from evalpipe.reports.records import SweepResults
from evalpipe_tests.reports.sweeps import (
    EMPTY,
    REFERENCE,
    SweepBuilder,
    agent,
    calibration,
    graded_row,
    manifest,
    task,
)


def graded_rows(agents: list[str], tasks: int, samples: int, seed: int = 7) -> pa.Table:
    """Return tasks x samples rows for each agent; `reference` resolves all, `empty` none, the others by chance."""
    rng = np.random.default_rng(seed)
    number = tasks * samples
    template = graded_row("x", "y", "original-1", resolved=False)
    evidence = pa.array([template["unmet_tests"], []], GRADED_RESULTS.field("unmet_tests").type)
    easy = rng.beta(0.5, 0.5, size=tasks)
    task_column = pa.array(np.repeat([task(index).task_id for index in range(tasks)], samples))
    sample_column = pa.array(np.tile([f"original-{index}" for index in range(1, samples + 1)], tasks))
    parts = []
    for name in agents:
        chance = {"reference": np.ones(tasks), "empty": np.zeros(tasks)}.get(name, easy)
        resolved = rng.random(number) < np.repeat(chance, samples)
        changes: dict[str, Any] = {
            "agent": pa.array(np.full(number, name)),
            "task_id": task_column,
            "sample": sample_column,
            "attempt_id": pa.array(np.char.add(f"{name}-", np.arange(number).astype(str))),
            "resolved": pa.array(resolved),
            "verdict": pa.array(np.where(resolved, "resolved", "fail_to_pass_failed")),
            "unmet_tests": evidence.take(pa.array(resolved.astype(np.int64), pa.int64())),
            "cost_usd": pa.array(rng.lognormal(-1, 0.6, size=number)),
            "attempt_seconds": pa.array(rng.lognormal(5, 0.7, size=number)),
            "model_calls": pa.array(rng.poisson(25, size=number)),
            "input_tokens": pa.array(rng.lognormal(13, 0.6, size=number).astype(np.int64)),
            "cached_input_tokens": pa.array(rng.lognormal(12, 0.6, size=number).astype(np.int64)),
            "output_tokens": pa.array(rng.lognormal(9, 0.5, size=number).astype(np.int64)),
        }
        columns = [
            changes.get(field.name, pa.array([template.get(field.name)] * number, field.type)).cast(field.type)
            for field in GRADED_RESULTS
        ]
        parts.append(pa.table(columns, schema=GRADED_RESULTS))
    return pa.concat_tables(parts)


def full_sweep(agents: int, tasks: int, samples: int) -> SweepResults:
    """Return a big sweep whose attempts left all that a page has room for: patches, transcripts, evidence, prompts."""
    results = big_sweep(agents, tasks, samples)
    names = [f"{number:020x}".ljust(64, "0") for number in range(results.graded.num_rows)]
    digests = pa.array(names)
    unmet = [
        {"test_id": f"tests/test_shop.py::test_order[{number}]", "expected_in": "fail_to_pass", "outcome": "failed",
         "message": f"E   AssertionError: assert <Order {number}> == <Order>\n" * 40}
        for number in range(20)
    ]  # fmt: skip
    kind = results.graded.schema.field("unmet_tests").type
    evidence = pa.array([unmet, []], kind).take(results.graded["resolved"].cast(pa.int64()))
    changes = {"patch_sha256": digests, "transcript_sha256": digests, "unmet_tests": evidence}
    columns = [changes.get(name, results.graded[name]) for name in results.graded.schema.names]
    patch = b"diff --git a/shop.py b/shop.py\n@@ -1 +1 @@\n-if a < b & c:\n+if a <= b:\n" * 40
    prompts = {"original": "The <total> of an order & its tax are wrong.\n" * 200}
    return replace(
        results,
        graded=pa.table(columns, schema=results.graded.schema),
        tasks=tuple(replace(task, prompts=prompts) for task in results.tasks),
        transcripts=frozenset(names),
        calibration=calibration([task.task_id for task in results.tasks]),
        read_blob=lambda digest: patch,
    )


def big_sweep(agents: int, tasks: int, samples: int) -> SweepResults:
    """Return a sweep of so many contenders, besides the two controls."""
    names = [f"agent-{number}" for number in range(agents)]
    builder = SweepBuilder({}, agents=[agent(name) for name in names], samples=samples)
    infos = tuple(task(index) for index in range(tasks))
    everybody = [*names, "reference", "empty"]
    builder.changes = {
        "tasks": infos,
        "agents": (*(agent(name) for name in names), REFERENCE, EMPTY),
        "comparisons": tuple((names[0], name) for name in names[1:]),
        "graded": graded_rows(everybody, tasks, samples),
        "manifests": {(name, "original"): manifest(name) for name in everybody},
    }
    return builder.build()
