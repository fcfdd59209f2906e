"""The manifest: what was run, for one agent and prompt mode of a sweep, as typed records and as bytes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalpipe.manifest.canonical import normalized
from evalpipe.manifest.validation import (
    SCHEMA_VERSION,
    ManifestError,
    combined_image_digest,
    validate_manifest,
)


@dataclass(frozen=True, slots=True)
class TaskSetRecord:
    """The frozen tasks; `revision` is their content hash, `provisional` that both passes were on one day."""

    name: str
    revision: str
    task_count: int
    prompt_mode: str
    provisional: bool


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """The agent, pinned; None is no limit, or the provider's own value. `max_attempts` is the retry policy.

    What stands after it is left out of the manifest where an agent does not have it.
    """

    name: str
    adapter: str
    model: str
    model_version: str
    scaffold: str
    scaffold_version: str
    tools: tuple[str, ...]
    max_turns: int | None
    context_limit: int | None
    temperature: float | None
    max_attempts: int
    provider: str | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    command: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    forwarder: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the agent as the schema of the manifest has it."""
        document = asdict(self)
        document["tools"] = list(self.tools)
        document["retry_policy"] = {"max_attempts": document.pop("max_attempts")}
        for name in ("provider", "max_tokens", "max_cost_usd", "command", "variables", "forwarder"):
            if not document[name]:
                del document[name]
        return document | ({"command": list(self.command)} if self.command else {})


@dataclass(frozen=True, slots=True)
class EnvironmentRecord:
    """Where attempts run; `images` counts the tasks of each image by its digest, `memory_limit` is in bytes.

    `history` is what an agent may read of the past: `ancestors` or `none`. `silence_s` and `count_rate_limit_waits` are
    None for agents that nobody watches.
    """

    sandbox: str
    engine_version: str | None
    images: Mapping[str, int]
    task_timeout_s: float
    network: str
    cpu_limit: float
    memory_limit: int
    pids_limit: int
    history: str
    silence_s: float | None = None
    count_rate_limit_waits: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the environment as the schema of the manifest has it."""
        document = {**asdict(self), "images": dict(self.images), "image_digest": combined_image_digest(self.images)}
        for name in ("silence_s", "count_rate_limit_waits"):
            if document[name] is None:
                del document[name]
        return document


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """The passed probe of one image: the version of what is looked at, when, how long, and of how many tasks."""

    version: str
    probed_at: datetime
    seconds: float
    tasks: int


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """The program of an agent as it was installed: the hash of its file and of the list of its packages (hex SHA-256).

    `images` maps the image of a task to the image with the program over it.
    """

    sha256: str
    packages_sha256: str
    images: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A valid manifest; `build_manifest` makes it. `region` and `currency` are there when costs are priced.

    `provider_url` is where the agent's model is called.
    """

    run_id: str
    created_at: datetime
    evalpipe_version: str
    task_set: TaskSetRecord
    agent: AgentRecord
    environment: EnvironmentRecord
    samples_per_task: int
    priced: bool
    region: str | None
    currency: str | None
    provider_url: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as its JSON Schema has it."""
        document = {
            "schema_version": SCHEMA_VERSION,
            "evalpipe_version": self.evalpipe_version,
            "run_id": self.run_id,
            "created_at": self.created_at.astimezone(UTC).isoformat(),
            "task_set": asdict(self.task_set),
            "agent": self.agent.to_json(),
            "environment": self.environment.to_json(),
            "samples_per_task": self.samples_per_task,
            "priced": self.priced,
        }
        optional = {"region": self.region, "currency": self.currency, "provider_url": self.provider_url}
        return document | {name: value for name, value in optional.items() if value is not None}

    def to_bytes(self) -> bytes:
        """Return the manifest as it is stored."""
        return manifest_bytes(self.to_json())


def build_manifest(
    *,
    run_id: str,
    created_at: datetime,
    evalpipe_version: str,
    task_set: TaskSetRecord,
    agent: AgentRecord,
    environment: EnvironmentRecord,
    samples_per_task: int,
    priced: bool = False,
    region: str | None = None,
    currency: str | None = None,
    provider_url: str | None = None,
) -> Manifest:
    """Return a manifest that its schema accepts; `created_at` has a time zone. Raises ManifestError otherwise."""
    if created_at.tzinfo is None:
        raise ManifestError(["$.created_at: has no time zone; give it in UTC"])
    manifest = Manifest(
        run_id=run_id,
        created_at=created_at,
        evalpipe_version=evalpipe_version,
        task_set=task_set,
        agent=agent,
        environment=environment,
        samples_per_task=samples_per_task,
        priced=priced,
        region=region,
        currency=currency,
        provider_url=provider_url,
    )
    validate_manifest(manifest.to_json())
    return manifest


def manifest_bytes(document: dict[str, Any]) -> bytes:
    """Return a manifest as it is stored: JSON with sorted keys, ending in a newline. Raises ManifestError."""
    validate_manifest(document)
    text = json.dumps(normalized(document), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def with_probes(document: Mapping[str, Any], probes: Mapping[str, ProbeRecord]) -> dict[str, Any]:
    """Return a manifest with the probe that each of its images passed, by digest. Raises ManifestError."""
    records = {
        image: {**asdict(probe), "probed_at": probe.probed_at.astimezone(UTC).isoformat()}
        for image, probe in probes.items()
    }
    probed = {**document, "probe": records}
    validate_manifest(probed)
    return probed


def with_program(document: Mapping[str, Any], program: ProgramRecord) -> dict[str, Any]:
    """Return a manifest with the agent's program as it was installed. Raises ManifestError."""
    hashes = {"sha256": program.sha256, "packages_sha256": program.packages_sha256}
    installed = {**document, "program": hashes, "agent_images": dict(program.images)}
    validate_manifest(installed)
    return installed


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest in a file as JSON. Raises ManifestError, naming the file, when it is not valid."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ManifestError([f"{path}: there is no manifest; run the sweep to write it"]) from error
    except (OSError, ValueError) as error:
        raise ManifestError([f"{path}: cannot be read as JSON: {error}"]) from error
    try:
        validate_manifest(document)
    except ManifestError as error:
        raise ManifestError([f"{path}: {problem}" for problem in error.problems]) from error
    validated: dict[str, Any] = document
    return validated
