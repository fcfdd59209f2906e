"""What a project's pipeline installs before it runs the tests: GitHub's workflows and GitLab's `.gitlab-ci.yml`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from evalpipe.environments.templates.python_commands import Installer, without_tools
from evalpipe.environments.templates.python_parts import Folder, Group, Use, Wanted

PIPELINE: Final = "pipeline"
"""The source of the groups of this module."""

_NAMED_FOR_TESTS: Final = frozenset(
    {"test", "tests", "testing", "pytest", "unit", "unittest", "unittests", "ci", "main", "python", "build", "check"}
    | {"checks", "integration", "gitlab"}
)
_NAMED_FOR_OTHERS: Final = frozenset(
    {
        "release",
        "publish",
        "pypi",
        "docs",
        "doc",
        "lint",
        "mypy",
        "typing",
        "bench",
        "benchmark",
        "benchmarks",
        "codspeed",
    }
    | {"nightly", "docker", "wheels", "downstream", "deploy"}
)
_RUNS_TESTS: Final = re.compile(r"\b(?:pytest|unittest|coverage run|make (?:test|check))\b")


def pipeline_groups(folder: Folder, installer: Installer) -> Iterator[Group]:
    """What the first job of each pipeline that runs tests itself, and not by tox or nox, installs."""
    names = [name for name in folder.names() if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml", name)]
    for name in filter(_may_run_tests, names):
        for lines in _jobs(folder, name):
            if any(_RUNS_TESTS.search(line) for line in lines):
                wanted = without_tools(installer.commands(lines, name))
                if wanted.requirements or wanted.locals:
                    # A file name is no name of a group; what runs tests is for tests.
                    yield Group(
                        "pipeline", name, Wanted(wanted.requirements, wanted.locals, files=wanted.files), Use.TESTS
                    )
                break


def _may_run_tests(name: str) -> bool:
    words = set(re.split(r"[-_.\s]+", name.rpartition("/")[2].lower()))
    return bool(words & _NAMED_FOR_TESTS) and not words & _NAMED_FOR_OTHERS


def _jobs(folder: Folder, name: str) -> Iterator[list[str]]:
    try:
        document = YAML(typ="safe", pure=True).load(folder.text(name) or "")
    except (YAMLError, ValueError, TypeError, RecursionError):
        return
    if not isinstance(document, Mapping):
        return
    jobs: Any = document.get("jobs") if name.startswith(".github/") else document
    before = [] if name.startswith(".github/") else _script(document, ("before_script",))
    for job in jobs.values() if isinstance(jobs, Mapping) else ():
        if isinstance(job, Mapping):
            steps = job.get("steps")
            runs = (
                [_script(step, ("run",)) for step in steps if isinstance(step, Mapping)]
                if isinstance(steps, list)
                else []
            )
            yield [*before, *_script(job, ("before_script", "script")), *(line for run in runs for line in run)]


def _script(table: Mapping[Any, Any], keys: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    for key in keys:
        value = table.get(key)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                lines += re.sub(r"\\\n", " ", text).splitlines()
    return lines
