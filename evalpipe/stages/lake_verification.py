"""Verifies the whole lake: every table against its schema and checksums, every blob against its name, every manifest.

Everything that is wrong is found, not only the first.
"""

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
        for path in manifests:
            faults += _some(_inspect_manifest(path))
            advance()
    faults += missing_blobs(lake, names)
    counts = len(tables), len(blobs), len(manifests)
    return LakeReport(*counts, tuple(faults), tuple(unfinished_writes(lake)), tuple(lake.folder.waiting()))


def _inspect_manifest(path: Path) -> LakeFault | None:
    try:
        read_manifest(path)
    except ManifestError as error:
        return LakeFault(LakeFaultKind.MANIFEST, path, f"{error}\nrestore {path} from a backup")
    return None


def _some(fault: LakeFault | None) -> list[LakeFault]:
    return [] if fault is None else [fault]
