"""The agents of a sweep as programs: their adapters, and the images in which their programs are installed."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Protocol

from evalpipe.agents import Adapter, PatchReplay, PatchScript
from evalpipe.agents.adapter import ProgramSettings
from evalpipe.agents.aider import Aider
from evalpipe.agents.claude_code import ClaudeCode
from evalpipe.agents.codex import Codex
from evalpipe.agents.command import Command, ForwarderKind
from evalpipe.agents.gemini_cli import GeminiCli
from evalpipe.agents.layers import Program, agent_layer, program_sha256
from evalpipe.agents.mini_swe_agent import MiniSweAgent
from evalpipe.agents.opencode import Opencode
from evalpipe.config import PROGRAM_FORMS, AgentConfig
from evalpipe.environments import BuildStatus
from evalpipe.lake import Row
from evalpipe.manifest import ProgramRecord
from evalpipe.stages.bench import Workbench
from evalpipe.stages.images import EnvironmentNotReady, environment_of_task
from evalpipe.tasks import LoadedTaskSet, Task


class _ProgramAdapter(Adapter, Protocol):
    """An adapter of a program that evalpipe installs."""

    @property
    def program(self) -> Program:
        """What is installed."""


_PROGRAMS: dict[str, Callable[[ProgramSettings, str], _ProgramAdapter]] = {
    "claude-code": ClaudeCode,
    "codex": Codex,
    "gemini-cli": GeminiCli,
    "opencode": Opencode,
    "aider": Aider,
    "mini-swe-agent": MiniSweAgent,
}


def adapter_for(bench: Workbench, agent: AgentConfig, task_set: LoadedTaskSet) -> Adapter:
    """The adapter of an agent. Raises ScriptError when its script cannot be used, SettingRefused for its settings."""
    if agent.adapter == "reference":
        return PatchReplay(lambda assignment: task_set.gold_patch(assignment.task.task_id))
    if agent.adapter == "empty":
        return PatchReplay(lambda assignment: b"")
    if agent.adapter == "scripted":
        assert agent.script is not None  # the configuration model requires it
        return PatchReplay(PatchScript.read(bench.workspace.resolve(agent.script)).choose)
    if agent.adapter == "command":
        forwarder = None if agent.forwarder is None else ForwarderKind(agent.forwarder)
        return Command(_settings(agent), agent.command, agent.variables, forwarder)
    return _program_adapter(agent)


def agent_environment(bench: Workbench, agent: AgentConfig, task: Task) -> str:
    """What the sandbox opens for an attempt of `agent` at `task`: the task's image, or its layer over that.

    A layer that is not there is built: a program is installed once for each image, and never while an attempt runs.
    The engine is asked once for each image and program. Raises EnvironmentNotReady with the end of the build's log,
    SandboxError.
    """
    key = f"{agent.adapter} {agent.scaffold_version} {task.environment.image_digest}"
    if key not in bench.agent_environments:
        environment = environment_of_task(bench, task)
        if agent.adapter in PROGRAM_FORMS:
            environment = bench.builder.locate(_layer(bench, agent, task.environment.image_digest)["image_digest"])
        bench.agent_environments[key] = environment
    return bench.agent_environments[key]


def installed_program(bench: Workbench, agent: AgentConfig, tasks: Iterable[Task]) -> ProgramRecord | None:
    """What a manifest says of an agent's program, in the layers of all `tasks`; None when evalpipe installs none.

    Builds what is missing, see `agent_environment`. Raises EnvironmentNotReady also when two layers do not hold the
    same program: a registry may give another build of one version to another platform.
    """
    if agent.adapter not in PROGRAM_FORMS:
        return None
    images = sorted({task.environment.image_digest for task in tasks})
    rows = {image: _layer(bench, agent, image) for image in images}
    hashes = {row["program_sha256"] for row in rows.values()}
    if len(hashes) != 1:
        raise EnvironmentNotReady(
            f"{agent.name}: the images of its tasks hold different builds of {agent.adapter} {agent.scaffold_version}: "
            f"remove its images, so that all are built again"
        )
    packages = sorted({line for row in rows.values() for line in row["packages"]})
    return ProgramRecord(
        sha256=str(hashes.pop()),
        packages_sha256=hashlib.sha256("".join(f"{line}\n" for line in packages).encode()).hexdigest(),
        images={image: str(row["image_digest"]) for image, row in rows.items()},
    )


def _settings(agent: AgentConfig) -> ProgramSettings:
    return ProgramSettings(agent.model, agent.temperature, agent.context_limit, agent.tools)


def _program_adapter(agent: AgentConfig) -> _ProgramAdapter:
    return _PROGRAMS[agent.adapter](_settings(agent), agent.scaffold_version)


def _layer(bench: Workbench, agent: AgentConfig, image: str) -> Row:
    """The row of the layer of an agent's program over an image, which is there."""
    if bench.sandbox.name != "docker":
        raise EnvironmentNotReady(
            f"{agent.name}: the program of {agent.adapter} is installed in an image, which needs Docker: start an "
            f"engine, and validate and freeze the tasks with it"
        )
    program = _program_adapter(agent).program
    name = f"{program.registry.value} {program.package} {program.version} {image}"
    place = (agent.adapter, hashlib.sha256(name.encode()).hexdigest()[:16])
    with bench.lake.locked("agent_images", *place):
        known = bench.lake.rows("agent_images", *place)
        if known and bench.builder.exists(known[0]["image_digest"]):
            return known[0]
        built = bench.builder.build(bench.builder.plan(agent_layer(image, program)))
        sha256 = program_sha256(built.packages)
        if built.status is not BuildStatus.BUILT or built.image_digest is None or sha256 is None:
            raise EnvironmentNotReady(
                f"{agent.name}: {program.package} {program.version} cannot be installed over {image} "
                f"({built.status}):\n{built.log_tail}"
            )
        row: Row = {
            "adapter": agent.adapter,
            "package": program.package,
            "version": program.version,
            "task_image": image,
            "image_digest": built.image_digest,
            "program_sha256": sha256,
            "packages": list(built.packages),
            "build_seconds": built.seconds,
            "built_at": bench.clock(),
        }
        bench.lake.write("agent_images", [row], *place)
        return row
