"""Agents without a model: they replay a patch. `reference`, `empty` and the scripted agents of the demo."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evalpipe.agents.adapter import AGENT_FOLDER, AgentCommand, Assignment
from evalpipe.history import PatchDoesNotApply, ScratchObjects
from evalpipe.history.objects import folders_above
from evalpipe.sandbox import FileEntry

# Only sh, cp, xargs and rm: an image need not have git or a language runtime. All that changes is removed first,
# because cp writes through a link and puts no file in the place of a folder.
_REPLAY = f"""
xargs -0 rm -rf -- < "$0/{AGENT_FOLDER}/removed"
cp -a "$0/{AGENT_FOLDER}/tree/." .
echo "replayed a stored patch"
"""


class ScriptError(Exception):
    """The script of a scripted agent cannot be used; the text names the file and what to do."""


@dataclass(frozen=True, slots=True)
class PatchReplay:
    """An agent that applies the patch that `choose` gives for an assignment; empty bytes change nothing."""

    choose: Callable[[Assignment], bytes]

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        patch = self.choose(assignment)
        if not patch:
            return AgentCommand(("sh", "-c", "echo 'changed nothing'"))
        parent = assignment.task.parent
        try:
            after = scratch.read_tree(scratch.apply_patch(parent, patch))
        except PatchDoesNotApply as error:
            raise ScriptError(f"the patch for task {assignment.task.task_id} does not apply: {error}") from error
        before = scratch.read_tree(parent)
        changed = {path: entry for path, entry in after.items() if before.get(path) != entry}
        blobs = dict(scratch.read_blobs({entry.oid for entry in changed.values()}))
        tree = f"{AGENT_FOLDER}/tree".encode()
        files = [FileEntry(tree, 0o040000)]
        files += [FileEntry(tree + b"/" + path, entry.mode, blobs[entry.oid]) for path, entry in changed.items()]
        emptied = {folder for path in before if path not in after for folder in folders_above(path)} & changed.keys()
        removed = [path for path, entry in before.items() if after.get(path) != entry] + sorted(emptied)
        listing = b"".join(path + b"\0" for path in removed)
        files.append(FileEntry(f"{AGENT_FOLDER}/removed".encode(), 0o100644, listing))
        return AgentCommand(("sh", "-ec", _REPLAY, root), tuple(files))


@dataclass(frozen=True, slots=True)
class PatchScript:
    """Stored patches by the number of a change: sample n takes entry (n - 1) modulo their count, None is nothing.

    Deterministic by (task, sample), so a demonstration gives the same figures everywhere.
    """

    folder: Path
    patches: dict[str, list[str | None]]

    @classmethod
    def read(cls, path: Path) -> "PatchScript":
        """Read a script. Raises ScriptError when it is missing, is not a script or names a missing patch."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ScriptError(f"{path} is not a readable script of an agent: {error}") from error
        patches = document.get("patches") if isinstance(document, dict) else None
        if not isinstance(patches, dict) or not all(map(_is_names, patches.values())):
            raise ScriptError(f'{path} must hold {{"patches": {{"<change number>": ["file.patch", null, …]}}}}')
        script = cls(path.parent, patches)
        for name in {name for names in patches.values() for name in names if name is not None}:
            if not (path.parent / name).is_file():
                raise ScriptError(f"{path} names the patch {name}, which is not there")
        return script

    def digest(self) -> str:
        """SHA-256 (hex) of the script and of every patch that it names."""
        found = hashlib.sha256(json.dumps(self.patches, sort_keys=True).encode())
        for name in sorted({name for names in self.patches.values() for name in names if name is not None}):
            found.update(hashlib.sha256((self.folder / name).read_bytes()).digest())
        return found.hexdigest()

    def choose(self, assignment: Assignment) -> bytes:
        entries = self.patches.get(str(assignment.task.number)) or [None]
        name = entries[(assignment.sample - 1) % len(entries)]
        return b"" if name is None else (self.folder / name).read_bytes()


def _is_names(entry: object) -> bool:
    return isinstance(entry, list) and all(name is None or isinstance(name, str) for name in entry)
