"""Before the first attempt of an agent on an image: is the sandbox what the manifest will say?"""

import hashlib
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evalpipe.agents import HistoryKind
from evalpipe.agents.instance import Instance
from evalpipe.agents.probe import probe
from evalpipe.history import Repository, ScratchObjects, distinctive_lines
from evalpipe.lake import Row
from evalpipe.manifest import ProbeRecord
from evalpipe.runners import RunStatus
from evalpipe.runners.suite import run_suite
from evalpipe.stages.agent_programs import agent_environment
from evalpipe.stages.bench import Workbench, frozen_runner, runner_for
from evalpipe.stages.sweeps import AgentSweep
from evalpipe.tasks import Task, hidden_paths

PROBE_VERSION = "1"
"""Part of a probe's place: raise it when a probe looks at more."""


class ProbeFailed(Exception):
    """A sandbox is not what its manifest would say; the text names the image and what was seen."""


def probe_images(bench: Workbench, agent_sweep: AgentSweep, labels: dict[str, str]) -> list[Row]:
    """Probe each image that the sweep's tasks run in, unless that was done for the same configuration.

    Returns the row of each. Raises ProbeFailed for the first image with a fault, EnvironmentNotReady, SandboxError,
    InstanceUnproven.
    """
    by_image: dict[str, list[Task]] = {}
    for task in agent_sweep.task_set.tasks.values():
        by_image.setdefault(task.environment.image_digest, []).append(task)
    return [_probe_image(bench, agent_sweep, image, tasks, labels) for image, tasks in sorted(by_image.items())]


def probe_records(rows: Iterable[Row]) -> dict[str, ProbeRecord]:
    """What a manifest says of passed probes, by image."""
    return {
        row["image_digest"]: ProbeRecord(PROBE_VERSION, row["probed_at"], row["probe_seconds"], len(row["tasks"]))
        for row in rows
    }


def _probe_image(
    bench: Workbench, agent_sweep: AgentSweep, image: str, tasks: Sequence[Task], labels: dict[str, str]
) -> Row:
    configuration = agent_sweep.configuration(next(iter(agent_sweep.manifests)))
    place = (agent_sweep.sweep.name, configuration, PROBE_VERSION, hashlib.sha256(image.encode()).hexdigest()[:16])
    with bench.lake.locked("probes", *place):
        known = bench.lake.rows("probes", *place)
        if known and not known[0]["findings"]:
            return known[0]
        started = time.monotonic()
        with bench.room.taken(agent_sweep.limits()):
            findings = _look(bench, agent_sweep, tasks, labels)
        row: Row = {
            "sweep": agent_sweep.sweep.name,
            "agent": agent_sweep.agent.name,
            "configuration": configuration,
            "image_digest": image,
            "tasks": [task.task_id for task in tasks],
            "findings": findings,
            "probed_at": bench.clock(),
            "probe_seconds": time.monotonic() - started,
        }
        bench.lake.write("probes", [row], *place)
    if findings:
        raise ProbeFailed(
            f"no attempt of {agent_sweep.agent.name} is started in {image}: its sandbox is not as promised\n"
            + "\n".join(findings)
        )
    return row


def _look(bench: Workbench, agent_sweep: AgentSweep, tasks: Sequence[Task], labels: dict[str, str]) -> list[str]:
    # The oldest: what later tasks have as their answer stands in the trees of those that came after.
    oldest = min(tasks, key=lambda task: (task.merge_date, task.task_id))
    mirror = bench.mirror(oldest.repository)
    history = HistoryKind(agent_sweep.sweep.history)
    instance = bench.instances.get(mirror, oldest.parent, oldest.commit, hidden_paths(oldest), history)
    # Repositories may share an image, so each task is asked of its own mirror.
    answers = {
        task.task_id: distinctive_lines(bench.mirror(task.repository), task.parent, task.commit) for task in tasks
    }
    host_file = bench.workspace.state_dir / "not-for-any-box"
    host_file.parent.mkdir(parents=True, exist_ok=True)
    host_file.touch()
    environment = agent_environment(bench, agent_sweep.agent, oldest)
    mine = {**labels, "purpose": "probe"}
    with ScratchObjects(mirror) as scratch, _share(agent_sweep) as share:
        found = probe(
            bench.sandbox,
            environment,
            instance.entries(scratch),
            answers,
            host_file,
            agent_sweep.limits(),
            mine,
            isolated=bench.sandbox.name == "docker",
            share=share,
        )
    findings = [f"{finding.fault.value}: {finding.evidence}" for finding in found]
    return [*findings, *_test_command(bench, agent_sweep, mirror, oldest, instance, environment, mine)]


@contextmanager
def _share(agent_sweep: AgentSweep) -> Iterator[Path | None]:
    """A folder as the attempts of an agent with a model have one, without the socket in it."""
    if agent_sweep.agent.provider is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="evalpipe-") as folder:
        yield Path(folder)


def _test_command(
    bench: Workbench,
    agent_sweep: AgentSweep,
    mirror: Repository,
    task: Task,
    instance: Instance,
    environment: str,
    labels: dict[str, str],
) -> list[str]:
    """Whether the tests run in the box of an attempt, within its limits and on the agent's own tree."""
    runner = runner_for(frozen_runner(task))
    with ScratchObjects(mirror) as scratch, bench.sandbox.open(environment, agent_sweep.limits(), labels) as box:
        run = run_suite(box, runner, instance.entries(scratch), preparation=task.runner.prepare)
    report = run.report
    # An agent may get a tree without any test, when all of them are hidden: then the canary tells that tests run.
    expected = report.tests or hidden_paths(task)
    if report.status is RunStatus.COMPLETED and report.canary_failed and expected:
        return []
    said = report.detail or "no test ran"
    return [f"tests_do_not_run: {task.task_id}: {report.status.value}: {said}"]
