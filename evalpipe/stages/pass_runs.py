"""The runs of one validation pass: side by side as far as the machine carries them, each on disk the moment it ends.

A run that ended is a file of `suite_runs` until its pass is whole; then all of them become the one file of the pass in
`validation_runs`. Whoever is killed in between loses the runs that were under way, and no other.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple

from evalpipe.config import RepositoryConfig
from evalpipe.lake import Row
from evalpipe.runners import SuiteReport
from evalpipe.sandbox import FileEntry, Interrupted
from evalpipe.stages.bench import Workbench
from evalpipe.stages.validation_rows import reports_in, rows_of_run
from evalpipe.validation import (
    BoxFacts,
    ChangeUnderTest,
    RunConditions,
    RunName,
    Side,
    Suite,
    SuiteScope,
    ValidationClass,
    look_into_box,
    run_conditions,
    side_files,
)

Stored = Mapping[str, Any]


class PassPlace(NamedTuple):
    """One pass over one candidate, and the content key under which it ran, or is to run."""

    candidate_id: str
    validation_pass: str
    key: str


@dataclass
class PassRuns:
    """The runs of one pass over one candidate."""

    bench: Workbench
    config: RepositoryConfig
    change: ChangeUnderTest
    suite: Suite
    place: PassPlace
    image_digest: str
    labels: dict[str, str]
    files: dict[Side, list[FileEntry]] = field(default_factory=dict)
    """The trees of the sides, as far as they were read."""
    _rows: dict[RunName, list[Stored]] = field(default_factory=dict)
    _interrupted: Event = field(default_factory=Event)

    def run(self, wanted: Sequence[RunConditions]) -> dict[RunName, SuiteReport]:
        """Run the suite under each of the conditions, or take what ran before; returns the reports of all runs so far.

        What fails keeps no other run from its end, but that after an interrupt none begins. Raises SandboxError.
        """
        due = [one for one in wanted if not self._take_stored(one.name)]
        for side in {one.side for one in due} - self.files.keys():
            self.files[side] = side_files(self.bench.mirror(self.config.name), self.change, side)
        with ThreadPoolExecutor(max(1, len(due))) as pool:
            running = [pool.submit(self._run_one, one) for one in due]
        for done in running:
            done.result()
        return self.reports()

    def reports(self) -> dict[RunName, SuiteReport]:
        """The reports of all runs so far."""
        return reports_in([row for rows in self._rows.values() for row in rows])

    def look_into_box(self) -> BoxFacts:
        """What boxes of this pass's environment offer; a box is opened once in the life of a bench."""
        place = (self.suite.environment, self.suite.runner.name)
        facts = self.bench.box_facts.get(place)
        if facts is None:
            with self.bench.room.taken(self.suite.limits):
                facts = look_into_box(self.bench.sandbox, self.suite, self.labels)
            self.bench.box_facts[place] = facts
        return facts

    def finish(self, pass_class: ValidationClass | None) -> None:
        """Make the runs so far the file of the pass, which says `pass_class` by itself. Raises DiskFullError."""
        rows = [{**row, "pass_class": pass_class} for rows in self._rows.values() for row in rows]
        self.bench.lake.write("validation_runs", rows, *self.place[:2])
        self.bench.lake.remove("suite_runs", *self.place[:2])

    def _take_stored(self, name: RunName) -> bool:
        rows: list[Stored] = list(self.bench.lake.rows("suite_runs", *self.place[:2], name.value))
        if not rows or rows[0]["content_key"] != self.place.key:
            return False
        self._rows[name] = rows
        return True

    def _run_one(self, conditions: RunConditions) -> None:
        bench = self.bench
        moments: list[dt.datetime] = []
        files = self.files[conditions.side]
        run = run_conditions(bench.sandbox, self.suite, files, conditions, self.labels, self._room_for_one(moments))
        (started,) = moments
        rows = rows_of_run(self._common(), conditions, run, started, self.suite.test_files)
        bench.lake.write("suite_runs", rows, *self.place[:2], conditions.name.value)
        self._rows[conditions.name] = rows

    @contextmanager
    def _room_for_one(self, moments: list[dt.datetime]) -> Iterator[None]:
        """Wait until the machine carries one more; notes when that was. Trees are laid and reports read outside."""
        with self.bench.room.taken(self.suite.limits):
            if self._interrupted.is_set():
                raise Interrupted(f"{self.place.candidate_id}: another run of this pass was interrupted")
            moments.append(self.bench.clock())
            try:
                yield
            except Interrupted:
                self._interrupted.set()
                raise

    def _common(self) -> Row:
        return {
            "candidate_id": self.place.candidate_id,
            "repository": self.config.name,
            "validation_pass": self.place.validation_pass,
            "image_digest": self.image_digest,
            "content_key": self.place.key,
            "suite": (SuiteScope.WHOLE if self.suite.test_files is None else SuiteScope.AFFECTED).value,
        }
