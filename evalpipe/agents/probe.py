"""Looks from inside a sandbox whether it is what an attempt was promised, before anything is paid for.

The probe is a shell script that writes down what it sees; the conclusions are drawn outside. It uses what the simplest
image has: sh, cat, date, grep, sort.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from evalpipe.sandbox import DIRECTORY, REGULAR, FileEntry, Limits, Sandbox

CLOCK_TOLERANCE_S = 60
"""What a box's clock may be off before its command began or after it ended: less than a certificate or a test sees."""

TELLING_SHARE = 0.5
"""Of a change's distinctive lines: fewer stand in an image by chance, in libraries that do something alike."""

_FOLDER = ".evalpipe-probe"
_FACTS_BYTES, _LINES_BYTES = 64 * 1024, 16 * 1024 * 1024
_SCRIPT = b"""
exec > "$0/$3/facts" 2> /dev/null
echo "clock $(date -u +%s)"
for interface in /sys/class/net/*; do echo "interface ${interface##*/}"; done
while read -r name destination rest; do [ "$name" = Iface ] || echo "route $name $destination"; done < /proc/net/route
echo "user $(id -u)"
if echo x > evalpipe-probe && rm evalpipe-probe; then echo "writable yes"; fi
if [ -e "$1" ]; then echo "host_file yes"; fi
for file in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do
    [ ! -r "$file" ] || echo "memory $(cat "$file")"
done
for file in /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max; do
    [ ! -r "$file" ] || echo "pids $(cat "$file")"
done
status=1
if [ -s "$0/$3/lines" ]; then
    { grep -rhoaFf "$0/$3/lines" --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev --exclude-dir="$3" "$2"
      echo "$?" > "$0/$3/status"; } | sort -u > "$0/$3/found"
    status=$(cat "$0/$3/status")
fi
echo "searched $status"
"""


class ProbeFault(StrEnum):
    """What is not as an attempt was promised."""

    DID_NOT_END = "did_not_end"
    HOST_READABLE = "host_readable"
    NETWORK_THERE = "network_there"
    WORKSPACE_NOT_WRITABLE = "workspace_not_writable"
    RUNS_AS_ROOT = "runs_as_root"
    CLOCK_OFF = "clock_off"
    LIMIT_OFF = "limit_off"
    ANSWER_THERE = "answer_there"
    NOT_SEARCHED = "not_searched"


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """One fault and what shows it."""

    fault: ProbeFault
    evidence: str


def probe(
    sandbox: Sandbox,
    environment: str,
    instance: Iterable[FileEntry],
    answers: Mapping[str, frozenset[bytes]],
    host_file: Path,
    limits: Limits,
    labels: dict[str, str],
    *,
    isolated: bool,
    share: Path | None = None,
) -> list[ProbeFinding]:
    """What is wrong with a box as an attempt will have it; an empty list is a passed probe.

    `instance` is laid at `repo` as for an attempt. `answers` are the distinctive lines of each task's reference change,
    which are looked for in the whole image and in the instance. `host_file` is a file of this machine that no box may
    see; `share` is the folder of it that an attempt's box has. `isolated` is false for a sandbox that promises neither
    that nor limits (processes of the host); the others are held to all of it. Raises SandboxError.
    """
    lines = sorted({line for telling in answers.values() for line in telling})
    with sandbox.open(environment, limits, labels, share=share) as box:
        box.put([FileEntry(b"repo", DIRECTORY), FileEntry(_FOLDER.encode(), DIRECTORY)])
        box.put(FileEntry(b"repo/" + entry.path, entry.mode, entry.data) for entry in instance)
        box.put([FileEntry(f"{_FOLDER}/lines".encode(), REGULAR, b"".join(line + b"\n" for line in lines))])
        # Processes see the whole host, the reference change in the mirror too.
        searched = "/" if isolated else box.root
        command = ("/bin/sh", "-c", _SCRIPT.decode(), box.root, str(host_file), searched, _FOLDER)
        begun_at = time.time()
        ended = box.run(command, env={"LC_ALL": "C"}, cwd=f"{box.root}/repo")
        ended_at = time.time()
        facts = _facts(box.read_file(f"{_FOLDER}/facts", _FACTS_BYTES) or b"")
        found = box.read_file(f"{_FOLDER}/found", _LINES_BYTES) or b""
    if ended.exit_code != 0 or "searched" not in facts:
        words = (ended.stderr or ended.stdout)[-500:].decode(errors="replace").strip()
        return [ProbeFinding(ProbeFault.DID_NOT_END, f"exit code {ended.exit_code}: {words}")]
    findings = list(_promises(facts, begun_at, ended_at))
    if isolated:
        findings += _isolation(facts, limits, str(host_file))
    findings += _answers(facts, set(found.split(b"\n")), answers)
    return findings


def _facts(report: bytes) -> dict[str, list[str]]:
    facts: dict[str, list[str]] = {}
    for line in report.decode(errors="replace").splitlines():
        name, _, value = line.partition(" ")
        facts.setdefault(name, []).append(value)
    return facts


def _promises(facts: Mapping[str, list[str]], begun_at: float, ended_at: float) -> Iterable[ProbeFinding]:
    """What every sandbox promises. The box looked at its clock between the two times, in seconds since 1970."""
    if facts.get("writable") != ["yes"]:
        yield ProbeFinding(ProbeFault.WORKSPACE_NOT_WRITABLE, "a file cannot be made in the repository's folder")
    clock = int(facts["clock"][0]) if facts.get("clock", [""])[0].isdigit() else 0
    if not begun_at - CLOCK_TOLERANCE_S <= clock <= ended_at + CLOCK_TOLERANCE_S:
        yield ProbeFinding(ProbeFault.CLOCK_OFF, f"the box says {clock}, this machine {begun_at:.0f} to {ended_at:.0f}")


def _isolation(facts: Mapping[str, list[str]], limits: Limits, host_file: str) -> Iterable[ProbeFinding]:
    """What a container promises besides."""
    if "host_file" in facts:
        yield ProbeFinding(ProbeFault.HOST_READABLE, host_file)
    others = [name for name in facts.get("interface", []) if name != "lo"]
    if others or facts.get("route"):
        yield ProbeFinding(ProbeFault.NETWORK_THERE, ", ".join([*others, *facts.get("route", [])]))
    if facts.get("user") == ["0"]:
        yield ProbeFinding(ProbeFault.RUNS_AS_ROOT, "the commands of the box run as root")
    for name, wanted in (("memory", limits.memory_bytes), ("pids", limits.pids)):
        seen = facts.get(name, ["unknown"])[0]
        # The kernel counts memory in pages.
        if not seen.isdigit() or abs(int(seen) - wanted) > (4096 if name == "memory" else 0):
            yield ProbeFinding(ProbeFault.LIMIT_OFF, f"{name}: {seen} where {wanted} was asked for")


def _answers(
    facts: Mapping[str, list[str]], found: set[bytes], answers: Mapping[str, frozenset[bytes]]
) -> Iterable[ProbeFinding]:
    # 0: something was found, 1: nothing was; with files that cannot be read, 2 either way.
    if facts["searched"][0] not in ("0", "1", "2"):
        yield ProbeFinding(ProbeFault.NOT_SEARCHED, f"grep ended with {facts['searched'][0]}")
    for task_id, telling in sorted(answers.items()):
        there = telling & found
        if telling and len(there) >= TELLING_SHARE * len(telling):
            example = min(there).decode(errors="backslashreplace")
            evidence = f"{task_id}: {len(there)} of {len(telling)} distinctive lines, for example {example!r}"
            yield ProbeFinding(ProbeFault.ANSWER_THERE, evidence)
