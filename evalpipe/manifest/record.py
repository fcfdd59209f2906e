"""The manifest: what was run, for one agent and prompt mode of a sweep, as typed records and as bytes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
    """The agent, pinned; None is no limit, or the provider's own value. `max_attempts` is the retry policy."""

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


@dataclass(frozen=True, slots=True)
class EnvironmentRecord:
    """Where attempts run; `images` counts the tasks of each image by its digest, `memory_limit` is in bytes.

    `history` is what an agent may read of the past: `ancestors` or `none`.
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


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """The passed probe of one image: the version of what is looked at, when, how long, and of how many tasks."""

    version: str
    probed_at: datetime
    seconds: float
    tasks: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A valid manifest; `build_manifest` makes it. `region` and `currency` are there when costs are priced."""

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

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as its JSON Schema has it."""
        agent = asdict(self.agent)
        agent["tools"] = list(self.agent.tools)
        agent["retry_policy"] = {"max_attempts": agent.pop("max_attempts")}
        environment = {**asdict(self.environment), "images": dict(self.environment.images)}
        environment["image_digest"] = combined_image_digest(self.environment.images)
        document = {
            "schema_version": SCHEMA_VERSION,
            "evalpipe_version": self.evalpipe_version,
            "run_id": self.run_id,
            "created_at": self.created_at.astimezone(UTC).isoformat(),
            "task_set": asdict(self.task_set),
            "agent": agent,
            "environment": environment,
            "samples_per_task": self.samples_per_task,
            "priced": self.priced,
        }
        prices = {"region": self.region, "currency": self.currency}
        return document | {name: value for name, value in prices.items() if value is not None}

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
