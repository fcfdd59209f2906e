"""What the runners of JavaScript's test tools share: how the tool is found, its box, and its sealed report."""

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from evalpipe.runners.javascript_canary import Canary, choose_canaries
from evalpipe.runners.json_lines import read_json_lines
from evalpipe.runners.plan import REPOSITORY_FOLDER, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.report import SuiteReport
from evalpipe.runners.seal import new_key

_WRITER = "evalpipe_report.cjs"

# Node counts the processors of the machine, not those of the box. Two workers at least: with one, some tools run the
# tests in their own process, which a test can then end.
_SCRIPT = """
tool=$1 limit=$2
shift 2
if [ -x "node_modules/.bin/$tool" ]; then tool=./node_modules/.bin/$tool; fi
quota=max period=1
if [ -r /sys/fs/cgroup/cpu.max ]; then
    read -r quota period < /sys/fs/cgroup/cpu.max
elif [ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
    read -r quota < /sys/fs/cgroup/cpu/cpu.cfs_quota_us
    read -r period < /sys/fs/cgroup/cpu/cpu.cfs_period_us
fi
case $quota in
    max | -1) workers=$(nproc) ;;
    *) workers=$(((quota + period - 1) / period)) ;;
esac
if [ "$workers" -lt 2 ]; then workers=2; fi
if [ -n "$limit" ]; then set -- "$limit=$workers" "$@"; fi
exec "$tool" "$@"
"""


@dataclass(frozen=True, slots=True)
class Box:
    """The names of one run, and where its files lie in the box."""

    root: str
    canary: str = field(default_factory=lambda: f"test_{secrets.token_hex(8)}")
    report_path: str = field(default_factory=lambda: new_report_path("jsonl"))
    key: str = field(default_factory=new_key)

    def reporter(self, name: str) -> str:
        """The path of a reporter in the box."""
        return f"{self.root}/runner/{name}"

    def in_tree(self, path: bytes) -> str:
        """The path of a file of the tree in the box."""
        return f"{self.root}/{REPOSITORY_FOLDER}/{os.fsdecode(path)}"


def chosen_files(tree: SuiteTree, request: SuiteRequest) -> list[bytes] | None:
    """The test files that are asked for, as far as the tree has them; None for the whole suite."""
    return None if request.test_files is None else [path for path in request.test_files if path in tree]


def canaries_in(
    tree: SuiteTree,
    box: Box,
    request: SuiteRequest,
    arguments: Sequence[str],
    write: Callable[[Canary], Sequence[str]],
    modules: Sequence[str] = (),
) -> Mapping[bytes, bytes]:
    """The canary files, by their path from the top of the repository; `write` gives the lines of one."""
    canaries = choose_canaries(tree, box.canary, chosen_files(tree, request), arguments, modules)
    return {canary.path: canary.content(write(canary)) for canary in canaries}


def javascript_plan(
    box: Box,
    reporter: str,
    tool: str,
    arguments: Sequence[str],
    canaries: Mapping[bytes, bytes],
    *,
    workers_option: str = "",
    env: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> TestPlan:
    """The plan of a run of `tool`, which is the project's own where it has one. `workers_option` limits its workers."""
    inside = resources.files("evalpipe.runners").joinpath("inside")
    files = {f"runner/{name}".encode(): inside.joinpath(name).read_bytes() for name in (reporter, _WRITER)}
    for path, content in canaries.items():
        files[REPOSITORY_FOLDER.encode() + b"/" + path] = content
    told = {"report": f"{box.root}/{box.report_path}", "key": box.key, "canary": box.canary, **(settings or {})}
    files[b"runner/settings.json"] = json.dumps(told).encode()
    return TestPlan(
        command=("/bin/sh", "-c", _SCRIPT, "sh", tool, workers_option, *arguments),
        # As in a pipeline: nothing asks, watches, or writes snapshots that are not there.
        env={"CI": "true", "LC_ALL": "C.UTF-8", "TZ": "UTC", **(env or {})},
        files=files,
        report_path=box.report_path,
        canary=box.canary,
        key=box.key,
    )


def read_javascript(plan: TestPlan, report: bytes | None) -> SuiteReport:
    """Read the JSON lines that `evalpipe_report.cjs` wrote, of which the last says that the run is complete."""
    return read_json_lines(report, plan.canary, plan.key)


def let_canary_through(arguments: Sequence[str], options: Sequence[str], canary: str) -> list[str]:
    """`arguments` with the canary added to a pattern of test names, which may stand behind `=` or by itself."""
    found: list[str] = []
    is_pattern = False
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if is_pattern:
            argument = f"(?:{argument})|{canary}"
        elif option in options and equals:
            argument = f"{option}=(?:{value})|{canary}"
        is_pattern = argument in options
        found.append(argument)
    return found
