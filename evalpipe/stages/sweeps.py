"""What a sweep is made of when it runs: its task set, its agents, and a manifest for each agent and prompt mode."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple

from evalpipe.agents import PatchScript
from evalpipe.agents.watch import AttemptWatch
from evalpipe.config import PROGRAM_FORMS, AgentConfig, ConfigError, SweepConfig
from evalpipe.gateway import OpenAttempt
from evalpipe.manifest import (
    AgentRecord,
    EnvironmentRecord,
    Manifest,
    ProbeRecord,
    ProgramRecord,
    TaskSetRecord,
    build_manifest,
    configuration_digest,
    manifest_bytes,
    read_manifest,
    with_probes,
    with_program,
)
from evalpipe.manifest.canonical import canonical_text
from evalpipe.sandbox import Limits, ProcessSandbox, Sandbox
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import LoadedTaskSet, PromptMode, load_task_set

TRANSCRIPT_BYTES = 16 * 1024**2
"""What is kept of an agent's output, from its end: programs write some megabytes, and a loop writes without end."""
GRACE_S = 5.0
"""For an agent whose time is up, to write down what it has."""


@dataclass(frozen=True, slots=True)
class SampleKey:
    """One sample of one task: `original-3` is the third sample with the original prompt."""

    task_id: str
    mode: PromptMode
    number: int

    @property
    def sample(self) -> str:
        return f"{self.mode.value}-{self.number}"

    @classmethod
    def parse(cls, task_id: str, sample: str) -> "SampleKey":
        mode, _, number = sample.rpartition("-")
        return cls(task_id, PromptMode(mode), int(number))


class _Isolation(NamedTuple):
    """What a manifest says of the sandbox."""

    sandbox: str
    engine_version: str | None
    network: str


@dataclass(frozen=True, slots=True)
class AgentSweep:
    """One agent in a sweep. `configurations` maps each prompt mode to the digest of its manifest."""

    sweep: SweepConfig
    agent: AgentConfig
    task_set: LoadedTaskSet
    manifests: Mapping[PromptMode, dict[str, Any]]

    def configuration(self, mode: PromptMode) -> str:
        """The key under which attempts in `mode` are kept; see `configuration_key`."""
        return configuration_key(self.manifests[mode])

    def place(self, key: SampleKey) -> tuple[str, str, str, str, str]:
        """Where the rows of a sample lie in the lake: another configuration never overwrites them."""
        return (
            self.sweep.name,
            self.agent.name,
            self.configuration(key.mode),
            key.task_id,
            key.sample,
        )

    def limits(self) -> Limits:
        limits = self.sweep.limits
        return Limits(
            limits.timeout_s,
            memory_bytes=limits.memory,
            cpus=limits.cpus,
            pids=limits.pids,
            output_bytes=TRANSCRIPT_BYTES,
            grace_s=GRACE_S,
        )

    def watch(self, model: OpenAttempt | None) -> AttemptWatch | None:
        """What looks at an attempt while it runs; nothing needs to where evalpipe itself replays a patch."""
        limits, program = self.sweep.limits, self.agent.adapter
        if not runs_a_program(self.agent):
            return None
        return AttemptWatch(limits.timeout_s, limits.silence_s, model, limits.count_rate_limit_waits, program)


def sample_names(sweep: SweepConfig) -> list[str]:
    """The sample keys of a sweep, in the order in which they run: prompt modes take turns."""
    return [f"{mode}-{number}" for number in range(1, sweep.samples + 1) for mode in sweep.modes]


def sample_keys(sweep: SweepConfig, task_set: LoadedTaskSet) -> Iterator[SampleKey]:
    """Every sample that a sweep asks of one agent."""
    for sample in sample_names(sweep):
        for task_id in task_set.tasks:
            yield SampleKey.parse(task_id, sample)


@dataclass(frozen=True, slots=True)
class SampleChoice:
    """Some of the samples of a sweep: those of `tasks` and of `samples`, where empty stands for all."""

    tasks: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()

    def has(self, key: SampleKey) -> bool:
        """Whether a sample is one of them."""
        return (not self.tasks or key.task_id in self.tasks) and (not self.samples or key.sample in self.samples)


EVERY_SAMPLE = SampleChoice()
PILOT_TASKS = 5


def pilot_choice(sweep: SweepConfig, task_set: LoadedTaskSet, mode: PromptMode | None = None) -> SampleChoice:
    """One sample over five tasks, spread evenly over the set when it is ordered by category and merge date.

    `mode` is the prompt mode, by default the sweep's first.
    """
    ordered = sorted(task_set.tasks.values(), key=lambda task: (task.category, task.merge_date, task.task_id))
    count = min(PILOT_TASKS, len(ordered))
    tasks = tuple(ordered[(2 * number + 1) * len(ordered) // (2 * count)].task_id for number in range(count))
    return SampleChoice(tasks, (f"{mode or sweep.modes[0]}-1",))


def load_sweep_task_set(bench: Workbench, sweep: SweepConfig) -> LoadedTaskSet:
    """The frozen set of a sweep, checked. Raises TaskSetError."""
    return load_task_set(bench.workspace.task_sets_dir / sweep.task_set)


def runs_a_program(agent: AgentConfig) -> bool:
    """Whether something of an agent's own runs in the box, that may call a model, hang or fail."""
    return agent.adapter == "command" or agent.adapter in PROGRAM_FORMS


def configuration_key(manifest: Mapping[str, Any]) -> str:
    """The key (16 hex digits) under which attempts are kept: what an agent was given to work with.

    The number of samples, evalpipe's own version and the engine's are recorded in the manifest and left out here:
    to take more samples or to upgrade must not pay for every attempt again.
    """
    environment = {name: value for name, value in manifest["environment"].items() if name != "engine_version"}
    content = {"task_set": manifest["task_set"], "agent": manifest["agent"], "environment": environment}
    return hashlib.sha256(canonical_text(content).encode()).hexdigest()[:16]


def open_agent_sweep(bench: Workbench, sweep: SweepConfig, agent: AgentConfig, run_id: str) -> AgentSweep:
    """Load what an agent's part of a sweep needs to run, with a manifest for each prompt mode, checked by its schema.

    Nothing is written: `record_manifests` does that before the first attempt. Raises TaskSetError, ManifestError.
    """
    task_set = load_sweep_task_set(bench, sweep)
    isolation = _isolation(bench.sandbox)
    manifests = {
        PromptMode(mode): _manifest(bench, sweep, agent, task_set, mode, isolation, run_id).to_json()
        for mode in sweep.modes
    }
    return AgentSweep(sweep, agent, task_set, manifests)


def find_agent_sweep(bench: Workbench, sweep: SweepConfig, agent: AgentConfig, task_set: LoadedTaskSet) -> AgentSweep:
    """What was run of an agent's part of a sweep as it is configured now; needs no sandbox.

    For each prompt mode the newest recorded manifest of the present configuration under which there are attempts; a
    mode that was not run under it is left out. Of an archived sweep the newest one is taken, whatever the agent's file
    says by now. Raises ManifestError when a recorded manifest is damaged.
    """
    manifests = {}
    for mode in map(PromptMode, sweep.modes):
        for manifest in recorded_manifests(bench, sweep.name, agent.name, mode, task_set):
            environment = manifest["environment"]
            isolation = _Isolation(environment["sandbox"], environment["engine_version"], environment["network"])
            if sweep.archived or configuration_key(manifest) == configuration_key(
                _manifest(bench, sweep, agent, task_set, mode, isolation, manifest["run_id"]).to_json()
            ):
                manifests[mode] = manifest
    return AgentSweep(sweep, agent, task_set, manifests)


def recorded_manifests(
    bench: Workbench, sweep: str, agent: str, mode: PromptMode, task_set: LoadedTaskSet
) -> list[dict[str, Any]]:
    """The manifests over `task_set` under which there are attempts of an agent in a prompt mode, the oldest first.

    Raises ManifestError when one is damaged.
    """
    found = [
        manifest
        for manifest in map(read_manifest, bench.lake.documents(*_manifest_folder(sweep, agent, mode)))
        if manifest["task_set"]["revision"] == task_set.record.revision
        # One that a run recorded and then could not begin would hide what was run before it.
        and bench.lake.has_any("agent_runs", sweep, agent, configuration_key(manifest))
    ]
    return sorted(found, key=lambda item: str(item["created_at"]))


def recorded_configurations(bench: Workbench, sweep: str, agent: str) -> set[str]:
    """The keys of all configurations, earlier ones too, of which a manifest is there. Raises ManifestError."""
    folders = [_manifest_folder(sweep, agent, mode) for mode in PromptMode]
    return {configuration_key(read_manifest(path)) for folder in folders for path in bench.lake.documents(*folder)}


def agents_as_run(
    bench: Workbench, sweep: SweepConfig, task_set: LoadedTaskSet, agents: Mapping[str, AgentConfig]
) -> dict[str, AgentConfig]:
    """The agents of a sweep as their files have them; of an archived one as its manifests do.

    By then a file may be gone or stand for a newer model. Raises ConfigError for an agent that neither knows.
    """
    found = {}
    for name in sweep.agents:
        recorded = [
            manifest
            for mode in map(PromptMode, sweep.modes if sweep.archived else ())
            for manifest in recorded_manifests(bench, sweep.name, name, mode, task_set)
        ]
        if recorded:
            # Not checked: an older evalpipe may have recorded what a file must not say any more.
            found[name] = AgentConfig.model_construct(**{**recorded[-1]["agent"], "name": name})
        else:
            found[name] = agents[name] if name in agents else bench.workspace.load_agent(name)
    return found


def record_manifests(
    bench: Workbench,
    agent_sweep: AgentSweep,
    probes: Mapping[str, ProbeRecord],
    program: ProgramRecord | None = None,
) -> None:
    """Write each manifest that is not there yet, with the probe of each image where probes were made.

    `program` is the agent's program as it was installed. A file is never replaced: another configuration is another
    file.
    """
    for mode, configured in agent_sweep.manifests.items():
        manifest = configured if program is None else with_program(configured, program)
        folder = _manifest_folder(agent_sweep.sweep.name, agent_sweep.agent.name, mode)
        name = f"{configuration_digest(manifest)[:16]}.json"
        if name not in {path.name for path in bench.lake.documents(*folder)}:
            bench.lake.write_document(
                manifest_bytes(with_probes(manifest, probes) if probes else manifest), *folder, name
            )


def _isolation(sandbox: Sandbox) -> _Isolation:
    if isinstance(sandbox, ProcessSandbox):
        return _Isolation(sandbox.name, None, "none" if sandbox.cuts_network else "host")
    return _Isolation(sandbox.name, sandbox.describe().engine_version, "none")


def _manifest_folder(sweep: str, agent: str, mode: PromptMode) -> tuple[str, ...]:
    return "manifests", sweep, agent, mode.value


def _agent_record(bench: Workbench, agent: AgentConfig) -> AgentRecord:
    record = AgentRecord(
        **agent.model_dump(exclude={"description", "script", "retry_policy"}),
        max_attempts=agent.retry_policy.max_attempts,
    )
    if agent.script is None:
        return record
    # What a scripted agent does is in its patches: others are another agent.
    digest = PatchScript.read(bench.workspace.resolve(agent.script)).digest()
    return replace(record, scaffold_version=f"{record.scaffold_version}+{digest[:12]}")


def _provider_url(bench: Workbench, agent: AgentConfig) -> str | None:
    """Where the model is called; None also where the provider's file is gone, which only a run would miss."""
    if agent.provider is None:
        return None
    try:
        return bench.workspace.load_provider(agent.provider).base_url
    except ConfigError:
        return None


def _manifest(
    bench: Workbench,
    sweep: SweepConfig,
    agent: AgentConfig,
    task_set: LoadedTaskSet,
    mode: str,
    isolation: _Isolation,
    run_id: str,
) -> Manifest:
    watched = runs_a_program(agent)
    return build_manifest(
        run_id=run_id,
        created_at=bench.clock(),
        evalpipe_version=version("evalpipe"),
        task_set=TaskSetRecord(
            name=task_set.record.name,
            revision=task_set.record.revision,
            task_count=len(task_set.tasks),
            prompt_mode=mode,
            provisional=task_set.record.provisional,
        ),
        agent=_agent_record(bench, agent),
        environment=EnvironmentRecord(
            sandbox=isolation.sandbox,
            engine_version=isolation.engine_version,
            images=Counter(task.environment.image_digest for task in task_set.tasks.values()),
            task_timeout_s=sweep.limits.timeout_s,
            network=isolation.network,
            cpu_limit=sweep.limits.cpus,
            memory_limit=sweep.limits.memory,
            pids_limit=sweep.limits.pids,
            history=sweep.history,
            silence_s=sweep.limits.silence_s if watched else None,
            count_rate_limit_waits=sweep.limits.count_rate_limit_waits if watched else None,
        ),
        samples_per_task=sweep.samples,
        priced=sweep.currency is not None,
        region=sweep.region,
        currency=sweep.currency,
        provider_url=_provider_url(bench, agent),
    )
