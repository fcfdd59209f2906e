"""Which passes over candidates are due, and the runs that cover them: for the command line and for the sensor."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from evalpipe.config import RepositoryConfig
from evalpipe.environments import BuildStatus
from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.stages.bench import Workbench
from evalpipe.stages.images import images_of
from evalpipe.stages.validating import ValidationPass, is_validated, second_pass_due

_GAP = 40
"""To log again what is done costs 20 ms a candidate, a run of its own more than half a second."""


@dataclass
class DuePasses:
    """Candidates by what is to be done for a pass: to be run, waiting for another day, done or not wanted.

    Candidates that cannot run, for want of an environment or of the first pass, are in none.
    """

    due: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    idle: set[str] = field(default_factory=set)


def due_passes(
    bench: Workbench,
    configs: Sequence[RepositoryConfig],
    validation_pass: ValidationPass,
    known: Collection[str],
    *,
    newest: int | None = None,
    same_day: bool = False,
) -> DuePasses:
    """Look at the kept candidates of some repositories (the `newest` ones of each, or all).

    A pass is due that has not run, or not on what is there now. `known` are the partitions that Dagster has events
    of: what is in the lake and not there is to be logged.
    """
    found = DuePasses()
    for config in configs:
        images = images_of(bench, config.name)
        kept = [row for row in bench.lake.rows("candidate_commits", config.name) if row["reason"] == "kept"]
        for row in kept if newest is None else kept[-newest:]:
            key, image = row["candidate_id"], images.get(row["candidate_id"])
            if image is None or image["status"] != BuildStatus.BUILT:
                continue
            if is_validated(bench, config, row, validation_pass, image=image):
                # A stress pass that is not wanted is logged too: where nothing is left to do, nothing is missing.
                if f"{key}|{validation_pass}" in known:
                    found.idle.add(key)
                else:
                    found.due.append(key)
            elif validation_pass is ValidationPass.FIRST:
                found.due.append(key)
            elif is_validated(bench, config, row, ValidationPass.FIRST, image=image):
                waits = validation_pass is ValidationPass.SECOND and not (same_day or second_pass_due(bench, key))
                (found.waiting if waits else found.due).append(key)
    return found


def runs_over(order: Sequence[str], found: DuePasses, validation_pass: ValidationPass) -> Iterator[dict[str, str]]:
    """The tags of the runs that make a pass over what is due, and over nothing that is not idle.

    `order` is that of the partitions: a run covers a stretch of it.
    """
    due = set(found.due)
    stretch: list[str] = []
    gap = 0
    for key in (*order, None):
        if key is not None and key in due:
            stretch.append(key)
            gap = 0
        elif stretch and key in found.idle and gap < _GAP:
            gap += 1
        elif stretch:
            yield {RANGE_START: f"{stretch[0]}|{validation_pass}", RANGE_END: f"{stretch[-1]}|{validation_pass}"}
            stretch = []
