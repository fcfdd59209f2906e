"""A tiny workspace: a repository of eight mainline changes with two valid tasks, and agents whose answers are known.

Its environment has an `xargs` that counts the attempts of agents that change something, and that waits while the
workspace's gate says so: thus a test can stop the world in the middle of an attempt.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalpipe.cli import main
from evalpipe.config import Workspace
from evalpipe.config.init import write_workspace
from evalpipe_tests.history.builder import Builder, git
from evalpipe_tests.runners.environment import write_python

AGENTS = {
    "reference": "adapter: reference\n",
    "empty": "adapter: empty\n",
    "half": (
        'adapter: scripted\nmodel: none\nmodel_version: "1"\nscaffold: scripted\nscaffold_version: "1"\n'
        "script: data/half/script.json\n"
    ),
}
SWEEP = (
    "task_set: tiny\nagents: [reference, empty, half]\nsamples: 2\ndecision: Is the pipeline in order?\n"
    "comparisons:\n  - [half, empty]\nlimits:\n  timeout_s: 60\n  memory: 512m\n  cpus: 1\n"
)
EVALPIPE = (sys.executable, "-c", "from evalpipe.cli import main; main()")

SET_BY_COMMANDS = (
    *("DAGSTER_HOME", "EVALPIPE_STATE_DIR", "EVALPIPE_WORKSPACE", "MPLCONFIGDIR"),
    "DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR",
)

_PRICE = b"def price(amount):\n    return int(amount * 100) / 100\n\n\ndef tax(amount):\n    return amount * 0.2\n"
_ROUNDED = _PRICE.replace(b"int(amount * 100) / 100", b"round(amount, 2)")
_DISCOUNT = b"\n\ndef discount(amount, percent):\n    return amount - amount * percent / 100\n"
_TESTS = b"from shop import price\n\n\ndef test_tax():\n    assert price.tax(10) == 2\n"
_ROUNDING = b"\n\ndef test_rounds_to_the_nearest_cent():\n    assert price.price(1.999) == 2.0\n"
_DISCOUNTED = b"\n\ndef test_takes_the_discount_off():\n    assert price.discount(200, 25) == 150\n"
_NO_SIGNAL = b"\n\ndef test_tax_of_nothing():\n    assert price.tax(0) == 0\n"


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: exit code and the two streams as text."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class TinyWorkspace:
    """A workspace on disk, and the command line in it as a process of its own."""

    root: Path
    variables: Mapping[str, str]

    @classmethod
    def at(cls, root: Path) -> TinyWorkspace:
        """A folder to run commands in, whatever it holds."""
        return cls(root, {"EVALPIPE_SANDBOX": "process"})

    @property
    def gate(self) -> Gate:
        """Stands before `xargs` in the boxes of this workspace alone: copies of it run at the same time."""
        return Gate(self.root / "gate")

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root)

    @property
    def lake(self) -> Path:
        return self.root / "data" / "lake"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVALPIPE_", "DAGSTER_"))}
        return {**kept, **self.variables}

    def start(self, *arguments: str, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start `evalpipe` in a process group of its own."""
        return subprocess.Popen(
            [*EVALPIPE, *arguments],
            cwd=self.root,
            env={**self.environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def call(self, *arguments: str, variables: Mapping[str, str] | None = None) -> Finished:
        """Run `evalpipe` in this process, which saves the seconds that Dagster takes to be imported."""
        out, err = io.StringIO(), io.StringIO()
        handler = signal.getsignal(signal.SIGTERM)
        code = 0
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith(("EVALPIPE_", "DAGSTER_"))]:
                patch.delenv(name)
            # Named, so that what the command sets is undone with the rest.
            for name, value in {
                **dict.fromkeys(SET_BY_COMMANDS, ""),
                **self.environment(),
                **(variables or {}),
            }.items():
                patch.setenv(name, value)
            patch.chdir(self.root)
            patch.setattr(sys, "argv", ["evalpipe", *arguments])
            try:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    main()
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                signal.signal(signal.SIGTERM, handler)
        return Finished(code, out.getvalue(), err.getvalue())

    def succeed(self, *arguments: str, variables: Mapping[str, str] | None = None) -> Finished:
        """`call`, which must end with exit code 0."""
        finished = self.call(*arguments, variables=variables)
        assert finished.code == 0, f"{arguments}: {finished.err}"
        return finished

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None, timeout_s: float = 200) -> Finished:
        """Run `evalpipe` to its end."""
        return finish(self.start(*arguments, variables=variables), timeout_s)

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def change(self, path: str, old: str, new: str) -> None:
        """Replace `old` in a file that has it."""
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new))

    def watch_runs_closely(self) -> None:
        """Let Dagster look for dead runs every 3 s, and give their places free as soon."""
        self.change("dagster.yaml", "poll_interval_seconds: 30", "poll_interval_seconds: 3")
        self.change("dagster.yaml", "free_slots_after_run_end_seconds: 60", "free_slots_after_run_end_seconds: 3")


@dataclass(frozen=True, slots=True)
class Gate:
    """Stands before a program: counts its starts, and holds them from a number on.

    Counted from 0 over the life of the folder, which is there before the program starts.
    """

    folder: Path

    def hold_from(self, number: int) -> None:
        """Let starts from this number on wait."""
        (self.folder / "hold").write_text(str(number))

    def open(self) -> None:
        (self.folder / "hold").unlink(missing_ok=True)

    def begun(self) -> int:
        return sum(1 for _ in self.folder.glob("began-*"))

    def before(self, program: str) -> str:
        """A shell script that stands for `program`."""
        return _held(str(self.folder), program)


def _held(folder: str, program: str) -> str:
    lines = (
        "#!/bin/sh",
        f'gate="{folder}"',
        "i=0",
        'while ! mkdir "$gate/began-$i" 2>/dev/null; do i=$((i+1)); done',
        'while [ -e "$gate/hold" ] && [ $i -ge $(cat "$gate/hold") ]; do sleep 0.2; done',
        f'exec {program} "$@"',
    )
    return "".join(f"{line}\n" for line in lines)


def make_repository(path: Path) -> Builder:
    """Eight mainline changes: two valid tasks, one without a signal, documentation, tests or source alone."""
    repository = Builder(path)
    commit = repository.commit
    commit({b"shop/__init__.py": b"", b"shop/price.py": _PRICE, b"tests/test_price.py": _TESTS}, "A shop")
    commit({b"README.md": b"A shop.\n"}, "Say what it is (#1)")
    tests = _TESTS + _ROUNDING
    commit({b"shop/price.py": _ROUNDED, b"tests/test_price.py": tests}, "Round to the nearest cent (#2)")
    tests += b"\n\ndef test_tax_is_a_number():\n    assert price.tax(1)\n"
    commit({b"tests/test_price.py": tests}, "One more test (#3)")
    commit({b"shop/cli.py": b"print('shop')\n"}, "A program (#4)")
    tests += _DISCOUNTED
    files = {b"shop/price.py": _ROUNDED + _DISCOUNT, b"shop/cli.py": b"print('the shop')\n"}
    commit({**files, b"tests/test_price.py": tests}, "Discounts (#5)")
    tests += _NO_SIGNAL
    commit({b"shop/cli.py": b"print('a shop')\n", b"tests/test_price.py": tests}, "Reword the program (#6)")
    commit({b"README.md": b"A little shop.\n"}, "A word (#7)")
    return repository


def make_workspace(root: Path, variables: Mapping[str, str] | None = None) -> TinyWorkspace:
    """A workspace for the process sandbox, not mined yet. The tests run with the Python of this test session."""
    write_workspace(root)
    for example in root.glob("data/*/*.yaml"):
        example.unlink()
    tiny = TinyWorkspace(root.resolve(), {"EVALPIPE_SANDBOX": "process", **(variables or {})})
    repository = make_repository(tiny.root / "source.git")
    tiny.gate.folder.mkdir()
    # Copies share this environment, so the script finds the gate by the box that it runs in.
    tiny.write("gate/xargs", _held("${HOME%%/data/state/boxes/*}/gate", "/usr/bin/xargs"))
    write_python(tiny.gate.folder / "python3")
    setup = f"cp {tiny.gate.folder}/xargs bin/xargs && chmod +x bin/xargs"
    tiny.write("data/repos/shop.yaml", repository_yaml([setup], f"{tiny.gate.folder}/python3"))
    for name, text in AGENTS.items():
        tiny.write(f"data/agents/{name}.yaml", text)
    tiny.write("data/sweeps/small.yaml", SWEEP)
    patch = git(repository.path, "diff", "main~6", "main~5", "--", "shop").decode()
    tiny.write("data/half/two.patch", patch)
    tiny.write("data/half/script.json", json.dumps({"patches": {"2": ["two.patch"], "5": [None]}}))
    return tiny


def repository_yaml(setup: Sequence[str], python: str = "python3") -> str:
    """`data/repos/shop.yaml`."""
    runner = {"name": "pytest", "python": python}
    return (
        f"source: source.git\nrunner: {json.dumps(runner)}\n"
        f"environment:\n  template: packages\n  setup: {json.dumps(list(setup))}\n"
        "validation:\n  timeout_s: 60\n  memory: 1g\n  stress: false\n"
    )


def copy_of(template: TinyWorkspace, root: Path) -> TinyWorkspace:
    """A copy that goes on where the template stands; its environment stays the template's."""
    shutil.copytree(template.root, root, symlinks=True)
    return TinyWorkspace(root.resolve(), template.variables)


def finish(process: subprocess.Popen[str], timeout_s: float = 200) -> Finished:
    """Wait for a process; one that hangs is killed and the test fails."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"{process.args!r} hangs:\n{out}\n{err}") from None
    return Finished(process.returncode, out, err)


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    """Ask until a condition holds: the dearer the question is, the less often, or asking would fill a core."""
    end = time.monotonic() + timeout_s
    while True:
        asked = time.monotonic()
        if condition():
            return
        assert time.monotonic() < end, f"not within {timeout_s} s: {what}"
        time.sleep(min(max(0.05, 8 * (time.monotonic() - asked)), 1))


@contextlib.contextmanager
def killed_at_the_end(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Leave no process behind when a test fails."""
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def processes_in(folder: Path) -> list[int]:
    """Processes of this machine whose environment names `folder`'s boxes: what a sandbox left behind."""
    mark = os.fsencode(folder / "data" / "state" / "boxes")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found
