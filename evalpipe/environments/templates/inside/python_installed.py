"""Program that runs in an image at the end of its build: whether the project there is the one of the tree.

Its arguments are the tree's folder and a JSON file with the `names` of the distributions and the `modules` of the
project. It fails when one of them is a released copy: a dependency that depends on the project may have brought it.
It runs on the Python of the image, 3.8 or newer.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _faults(tree: str, names: Collection[str], modules: Iterable[str]) -> Iterator[str]:
    for distribution in importlib.metadata.distributions():
        # The metadata that setuptools writes beside the sources are the tree's own.
        if str(distribution.locate_file("")).startswith(tree):
            continue
        name = _canonical(distribution.metadata["Name"] or "")
        place = json.loads(distribution.read_text("direct_url.json") or "{}")
        own = place.get("url", "").startswith("file://" + tree)
        editable = place.get("dir_info", {}).get("editable", False)
        if own and not editable:
            yield f"{name} is a copy of the tree and not installed in place"
        if name in names and not (own and editable):
            yield f"{name} {distribution.version} is the released project, not that of the tree"
    for module in modules:
        found = importlib.util.find_spec(module)
        origin = (found.origin if found else None) or ""
        if "/site-packages/" in origin and not origin.startswith(tree + "/"):
            yield f"the module {module} comes from {origin}, not from the tree"


def main(tree: str, facts_path: str) -> int:
    """Print what is wrong; the exit code is 1 when something is."""
    facts = json.loads(Path(facts_path).read_text(encoding="utf-8"))
    faults = list(_faults(tree, {_canonical(name) for name in facts["names"]}, facts["modules"]))
    for fault in faults:
        print(f"evalpipe: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
