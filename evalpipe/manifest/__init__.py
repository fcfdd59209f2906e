"""The manifest of a run: its records, its JSON Schema, and the comparison of two."""

from evalpipe.manifest.comparison import (
    MISSING,
    Difference,
    Missing,
    configuration_digest,
    describe_differences,
    differences,
)
from evalpipe.manifest.record import (
    AgentRecord,
    EnvironmentRecord,
    Manifest,
    ProbeRecord,
    ProgramRecord,
    TaskSetRecord,
    build_manifest,
    manifest_bytes,
    read_manifest,
    with_probes,
    with_program,
)
from evalpipe.manifest.validation import (
    SCHEMA_VERSION,
    ManifestError,
    combined_image_digest,
    schema,
    validate_manifest,
)

__all__ = [
    "MISSING",
    "SCHEMA_VERSION",
    "AgentRecord",
    "Difference",
    "EnvironmentRecord",
    "Manifest",
    "ManifestError",
    "Missing",
    "ProbeRecord",
    "ProgramRecord",
    "TaskSetRecord",
    "build_manifest",
    "combined_image_digest",
    "configuration_digest",
    "describe_differences",
    "differences",
    "manifest_bytes",
    "read_manifest",
    "schema",
    "validate_manifest",
    "with_probes",
    "with_program",
]
