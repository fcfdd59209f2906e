"""What a probe sees from inside a box, and that each broken promise is told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalpipe.agents.probe import ProbeFault, ProbeFinding, probe
from evalpipe.sandbox import EXECUTABLE, REGULAR, FileEntry, Limits
from evalpipe_tests.agents.conftest import Place

LIMITS = Limits(60, memory_bytes=512 * 1024**2, pids=128)
INSTANCE = [FileEntry(b"a.py", REGULAR, b"x = 1\n"), FileEntry(b"folder/run", EXECUTABLE, b"#!/bin/sh\n")]
ANSWER = {"task-1": frozenset({b"def the_new_function(argument):", b"return argument + the_old_total"})}


def findings(
    place: Place,
    *,
    answers: Mapping[str, frozenset[bytes]] = ANSWER,
    instance: list[FileEntry] = INSTANCE,
    host_file: Path = Path("/nowhere/at/all"),
    isolated: bool = True,
) -> list[ProbeFinding]:
    labels = {"purpose": "test"}
    return probe(place.sandbox, place.image, instance, answers, host_file, LIMITS, labels, isolated=isolated)


def faults(found: list[ProbeFinding]) -> list[ProbeFault]:
    assert all(finding.evidence for finding in found)
    return [finding.fault for finding in found]


@pytest.mark.docker
def test_a_box_as_it_was_promised_passes(docker_place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    assert findings(docker_place, host_file=secret) == []


def test_processes_pass_what_they_promise(process_place: Place) -> None:
    assert findings(process_place, isolated=False) == []


@pytest.mark.parametrize(("begun", "ended", "is_off"), [(0, 300, False), (-3600, -3590, True), (3600, 3610, True)])
def test_a_clock_is_off_when_no_moment_of_the_look_is_near_it(
    begun: float, ended: float, *, is_off: bool, process_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search of an image takes minutes on a busy machine, and the box looked at its clock before it."""
    now = time.time()
    moments = iter([now + begun, now + ended])
    monkeypatch.setattr("evalpipe.agents.probe.time", SimpleNamespace(time=lambda: next(moments)))
    assert (ProbeFault.CLOCK_OFF in faults(findings(process_place, isolated=False))) is is_off


def test_what_a_container_promises_is_not_taken_from_processes(process_place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    found = findings(process_place, answers={}, host_file=secret)
    assert {ProbeFault.HOST_READABLE, ProbeFault.LIMIT_OFF} <= set(faults(found))


@pytest.mark.docker
def test_a_limit_that_is_not_the_declared_one_is_told(docker_place: Place) -> None:
    other = Limits(60, memory_bytes=256 * 1024**2, pids=64)

    class Generous:
        """A sandbox that does not hold to the limits that it is given."""

        def __getattr__(self, name: str) -> object:
            return getattr(docker_place.sandbox, name)

        def open(self, environment: str, limits: Limits, labels: dict[str, str], *, share: Path | None) -> object:
            return docker_place.sandbox.open(environment, other, labels)

    found = probe(
        Generous(),  # type: ignore[arg-type]
        docker_place.image,
        INSTANCE,
        {},
        Path("/nowhere"),
        LIMITS,
        {"purpose": "test"},
        isolated=True,
    )
    assert faults(found) == [ProbeFault.LIMIT_OFF, ProbeFault.LIMIT_OFF]
    assert found[0].evidence == f"memory: {256 * 1024**2} where {512 * 1024**2} was asked for"


@pytest.mark.docker
def test_a_network_is_told(docker_place: Place) -> None:
    class Open:
        """A sandbox that gives every box the network."""

        def open(self, environment: str, limits: Limits, labels: dict[str, str], *, share: Path | None) -> object:
            return docker_place.sandbox.open(environment, limits, labels, network=True)

    found = probe(
        Open(),  # type: ignore[arg-type]
        docker_place.image,
        INSTANCE,
        {},
        Path("/nowhere"),
        LIMITS,
        {"purpose": "test"},
        isolated=True,
    )
    assert faults(found) == [ProbeFault.NETWORK_THERE]


def test_the_answer_in_the_instance_is_found_in_whatever_file(process_place: Place) -> None:
    binary = b"\0\1" + b"\n".join(sorted(ANSWER["task-1"])) + b"\xff"
    found = findings(process_place, instance=[*INSTANCE, FileEntry(b"deep/cache.pyc", REGULAR, binary)], isolated=False)
    assert faults(found) == [ProbeFault.ANSWER_THERE]
    assert found[0].evidence.startswith("task-1: 2 of 2 distinctive lines, for example 'def the_new_function")


def test_one_line_of_many_is_chance(process_place: Place) -> None:
    answers = {
        "task-1": ANSWER["task-1"] | {b"and a third line of the change", b"and a fourth one"},
        "task-2": frozenset[bytes](),
    }
    here = [*INSTANCE, FileEntry(b"b.py", REGULAR, b"  and a fourth one  \n")]
    assert findings(process_place, answers=answers, instance=here, isolated=False) == []


@pytest.mark.docker
def test_the_answer_in_the_image_is_found(docker_place: Place) -> None:
    # A line that the base image surely has stands for one that was left in it.
    line = b"root:x:0:0:root:/root:/bin/bash"
    found = findings(docker_place, answers={"task-9": frozenset({line})})
    assert faults(found) == [ProbeFault.ANSWER_THERE]
    assert found[0].evidence.startswith("task-9: 1 of 1 ")


def test_a_probe_that_cannot_write_says_so(process_place: Place) -> None:
    class Dead:
        """A sandbox in which nothing runs."""

        def open(self, environment: str, limits: Limits, labels: dict[str, str], *, share: Path | None) -> object:
            return process_place.sandbox.open(environment, Limits(0.01), labels)

    found = probe(
        Dead(),  # type: ignore[arg-type]
        process_place.image,
        INSTANCE,
        {},
        Path("/nowhere"),
        LIMITS,
        {"purpose": "test"},
        isolated=False,
    )
    assert faults(found) == [ProbeFault.DID_NOT_END]
