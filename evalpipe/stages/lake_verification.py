"""Verifies the whole lake: every table against its schema and checksums, every blob against its name, every manifest.

What rows name has to be there: blobs, and the manifest of each attempt. Everything that is wrong is found, not only the
first.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from evalpipe.lake import (
    LakeFault,
    LakeFaultKind,
    TableNames,
    blob_files,
    inspect_blob,
    inspect_table,
    missing_blobs,
    table_files,
    unfinished_writes,
)
from evalpipe.manifest import ManifestError, read_manifest
from evalpipe.stages.bench import Workbench
from evalpipe.stages.sweeps import configuration_key


@dataclass(frozen=True, slots=True)
class LakeReport:
    """What was looked at, in files, and what was wrong.

    `unfinished` writes are no faults: nobody reads them. Nor are files that are `waiting` for their store.
    """

    tables: int
    blobs: int
    manifests: int
    faults: tuple[LakeFault, ...]
    unfinished: tuple[Path, ...]
    waiting: tuple[Path, ...]


def verify_lake(bench: Workbench) -> LakeReport:
    """Read every file of the lake, and change none."""
    lake = bench.lake
    tables, blobs = table_files(lake), blob_files(lake)
    lake.folder.look(lake.root / "manifests")
    manifests = sorted((lake.root / "manifests").rglob("[!.]*.json"))
    names = TableNames()
    faults: list[LakeFault] = []
    with bench.progress("lake", len(tables) + len(blobs) + len(manifests)) as advance:
        for table, path in tables:
            faults += _some(inspect_table(table, path, names))
            advance()
        for path in blobs:
            faults += _some(inspect_blob(lake, path))
            advance()
        recorded: set[tuple[str, ...]] = set()
        for path in manifests:
            sweep, agent = path.relative_to(lake.root / "manifests").parts[:2]
            try:
                recorded.add((sweep, agent, configuration_key(read_manifest(path))))
            except ManifestError as error:
                faults.append(LakeFault(LakeFaultKind.MANIFEST, path, f"{error}\nrestore {path} from a backup"))
                # Of which attempts it is, it does not tell any more.
                recorded.update(_configurations(lake.root, sweep, agent))
            advance()
    faults += missing_blobs(lake, names)
    faults += _missing_manifests(lake.root, recorded)
    counts = len(tables), len(blobs), len(manifests)
    return LakeReport(*counts, tuple(faults), tuple(unfinished_writes(lake)), tuple(lake.folder.waiting()))


def _missing_manifests(root: Path, recorded: Collection[tuple[str, ...]]) -> Iterator[LakeFault]:
    """A fault for each configuration of an agent under which there are attempts, and of which no manifest is left."""
    for sweep, agent, configuration in sorted(_configurations(root, "*", "*").difference(recorded)):
        path = root / "manifests" / sweep / agent
        text = f"{path} has no manifest of the attempts under {configuration}: restore it from a backup"
        yield LakeFault(LakeFaultKind.MANIFEST, path, text)


def _configurations(root: Path, sweep: str, agent: str) -> set[tuple[str, ...]]:
    """Sweep, agent and configuration of all attempts that there are; `*` stands for any sweep and any agent."""
    top = root / "agent_runs"
    return {path.relative_to(top).parts[:3] for path in top.glob(f"{sweep}/{agent}/*/*/[!.]*.parquet")}


def _some(fault: LakeFault | None) -> list[LakeFault]:
    return [] if fault is None else [fault]
