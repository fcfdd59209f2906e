"""Every runner by its name in configuration files and task records."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evalpipe.runners.cargo import CargoRunner
from evalpipe.runners.generic import CanaryFile, GenericRunner, ReportFormat
from evalpipe.runners.go import GoRunner
from evalpipe.runners.gradle import GradleRunner
from evalpipe.runners.jest import JestRunner
from evalpipe.runners.maven import MavenRunner
from evalpipe.runners.mocha import MochaRunner
from evalpipe.runners.nextest import NextestRunner
from evalpipe.runners.node import NodeRunner
from evalpipe.runners.plan import Runner
from evalpipe.runners.pytest import PytestRunner
from evalpipe.runners.unittest import UnittestRunner
from evalpipe.runners.vitest import VitestRunner


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """What a team says of its runner in data/repos/*.yaml."""

    name: str
    python: str = "python3"
    arguments: tuple[str, ...] = ()
    command: str | None = None
    report_format: str | None = None
    reports: tuple[str, ...] = ()
    canary: Mapping[str, str] | None = None


def _generic(settings: RunnerSettings) -> Runner:
    if settings.command is None or settings.report_format is None or settings.canary is None:
        raise ValueError("the generic runner needs a command, a report format and a canary")
    report_format, canary = ReportFormat(settings.report_format), CanaryFile(**settings.canary)
    return GenericRunner(settings.command, report_format, canary, settings.reports)


_MAKERS: Mapping[str, Callable[[RunnerSettings], Runner]] = {
    "cargo": lambda settings: CargoRunner(arguments=settings.arguments),
    "generic": _generic,
    "go": lambda settings: GoRunner(arguments=settings.arguments),
    "gradle": lambda settings: GradleRunner(arguments=settings.arguments),
    "nextest": lambda settings: NextestRunner(arguments=settings.arguments),
    "maven": lambda settings: MavenRunner(arguments=settings.arguments),
    "jest": lambda settings: JestRunner(settings.arguments),
    "mocha": lambda settings: MochaRunner(settings.arguments),
    "node": lambda settings: NodeRunner(settings.arguments),
    "pytest": lambda settings: PytestRunner(python=settings.python, arguments=settings.arguments),
    "unittest": lambda settings: UnittestRunner(python=settings.python, arguments=settings.arguments),
    "vitest": lambda settings: VitestRunner(settings.arguments),
}


_BY_HAND: Mapping[str, tuple[str, ...]] = {
    "cargo": ("cargo", "test"),
    "go": ("go", "test", "./..."),
    "gradle": ("gradle", "--offline", "test"),
    "jest": ("npx", "jest"),
    "maven": ("mvn", "-o", "test"),
    "mocha": ("npx", "mocha"),
    "nextest": ("cargo", "nextest", "run"),
    "node": ("node", "--test"),
    "pytest": ("-m", "pytest"),
    "unittest": ("-m", "unittest", "discover"),
    "vitest": ("npx", "vitest", "run"),
}


def command_by_hand(settings: RunnerSettings, preparation: Sequence[str] = ()) -> str:
    """The shell command by which a person, or an agent, runs the suite in the tree, after the commands that prepare it.

    It leaves no report. Raises KeyError for a name that is not in the catalog.
    """
    if settings.command is not None:
        command = settings.command
    else:
        interpreter = (settings.python,) if settings.name in ("pytest", "unittest") else ()
        command = shlex.join((*interpreter, *_BY_HAND[settings.name], *settings.arguments))
    return " && ".join((*preparation, command))


def make_runner(settings: RunnerSettings) -> Runner:
    """The runner that `settings` describe. Raises KeyError for a name that is not in the catalog."""
    return _MAKERS[settings.name](settings)
