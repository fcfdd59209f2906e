"""Pools: how many steps of a kind run at a time, by the size of this machine unless somebody has set another number.

A step is a batch, and runs as many boxes side by side as the machine carries; a pool holds back the others.
"""

import math
import os
from collections.abc import Iterable

import dagster as dg

BOXES = "boxes"
"""Steps that run containers of evalpipe's own: validation, calibration, grading."""

IMAGES = "images"
"""Steps that build images, each several at a time."""

_BOXES_OF_STEP = 25
"""The smallest batch: more boxes than that a step cannot run, however large the machine is."""


def agent_pool(agent: str) -> str:
    """The pool of an agent's attempts, for whoever wants fewer calls to its provider at a time."""
    return f"agent_{agent}"


def steps_at_once(processors: int) -> int:
    """How many steps fill a machine, and one more, which begins while the last boxes of another still run."""
    return math.ceil(processors / _BOXES_OF_STEP) + 1


def size_pools(instance: dg.DagsterInstance, agents: Iterable[str]) -> None:
    """Give each pool that nobody has set a limit of this machine's size. The UI shows them under Deployment, Pools."""
    steps = steps_at_once(os.cpu_count() or 1)
    sizes = {BOXES: steps, IMAGES: 1, **{agent_pool(name): steps for name in agents}}
    storage = instance.event_log_storage
    known = {limit.name for limit in storage.get_pool_limits() if not limit.from_default}
    for name, size in sizes.items():
        if name not in known:
            storage.set_concurrency_slots(name, size)
