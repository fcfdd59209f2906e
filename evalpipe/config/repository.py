"""`data/repos/<name>.yaml`: a repository to mine, how its tests run, and what its images need."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evalpipe.config.forge import ForgeConfig
from evalpipe.config.runner import RunnerConfig
from evalpipe.config.values import (
    Argument,
    ConfigModel,
    Count,
    Glob,
    Memory,
    Owner,
    Positive,
    Slug,
    Text,
    refuse,
    wrong,
)

TemplateName = Literal["python", "packages", "go", "rust", "node", "maven", "gradle", "dockerfile", "image"]
PIP_TEMPLATES = ("python", "packages")
DEFAULT_BASE_IMAGES: Mapping[str, str] = {
    "python": "python:3.12-slim",
    "packages": "python:3.12-slim",
    "go": "golang:1",
    "rust": "rust:1",
    "node": "node:22",
    "maven": "maven:3-eclipse-temurin-21",
    "gradle": "eclipse-temurin:21",
}
BASE_IMAGE_VARIABLE = "EVALPIPE_BASE_IMAGE"


class EnvironmentConfig(ConfigModel):
    """The image that tests and agents run in: built by a template, from a team's Dockerfile, or one that it has."""

    template: TemplateName = Field(
        default="python",
        description="what builds the image; `dockerfile` is a team's own, `image` takes a finished one",
    )
    base_image: Argument | None = Field(
        default=None,
        description=f"image to build from; else ${BASE_IMAGE_VARIABLE}, else the template's own",
    )
    dockerfile: Path | None = Field(
        default=None, description="the team's Dockerfile, from the workspace's top, for `template: dockerfile`"
    )
    image: Argument | None = Field(default=None, description="the finished image, for `template: image`")
    packages: tuple[Argument, ...] = Field(default=(), description="pip requirements installed in the image")
    setup: tuple[Text, ...] = Field(default=(), description="shell commands run while the image is built")

    @model_validator(mode="after")
    def _one_way_to_an_image(self) -> Self:
        faults: list[tuple[str, str]] = []
        for name in ("image", "dockerfile"):
            if self.template == name and getattr(self, name) is None:
                faults.append((name, f"is missing: `template: {name}` needs it"))
            if self.template != name and getattr(self, name) is not None:
                faults.append((name, f"belongs to `template: {name}`; write that, or remove this line"))
        if self.template in ("image", "dockerfile"):
            for name in ("base_image", "packages", "setup"):
                if getattr(self, name):
                    faults.append((name, f"has no use with `template: {self.template}`, which is taken as it is"))
        if self.template not in PIP_TEMPLATES and self.packages:
            faults.append(("packages", f"are pip requirements, for templates {' and '.join(PIP_TEMPLATES)} only"))
        refuse(faults)
        return self


class PathRules(ConfigModel):
    """Globs that tell tests, source and generated files apart, from the repository's top."""

    tests: tuple[Glob, ...] = Field(default=(), description="test files, before the built-in rules")
    source: tuple[Glob, ...] = Field(default=(), description="source files, before the built-in rules")
    generated: tuple[Glob, ...] = Field(
        default=(), description="files nobody writes by hand, before the built-in rules"
    )


class ValidationConfig(ConfigModel):
    """Limits of one test run while candidates are validated."""

    timeout_s: Positive = Field(default=600.0, description="seconds that one test run may take")
    memory: Memory = Field(default=2 * 1024**3, description="memory of the container, as 512m or 2g")
    cpus: Positive = Field(default=1.0, description="processors of the container")
    pids: Count = Field(default=512, description="processes and threads in the container")
    suite: Literal["whole", "affected"] = Field(
        default="whole",
        description="`affected` runs the test files of the change, of its modules, and those that import its sources",
    )
    stress: bool = Field(
        default=True,
        description="whether what looks valid runs in another order, clock, locale, time zone and hostname too",
    )
    admit_compile_only: bool = Field(
        default=False,
        description="whether a `compile_only` candidate becomes a task when its text names what its tests miss",
    )


def _check_jira_project(value: str) -> str:
    if re.fullmatch(r"[A-Z][A-Z0-9_]{0,19}", value) is None:
        raise wrong(f"{value!r} is not the key of a Jira project; it is the part before the number, as ABC in ABC-12")
    return value


def _check_change_name(value: str) -> str:
    if re.fullmatch(r"#[1-9]\d{0,9}|[0-9a-f]{7,64}|[A-Za-z0-9_.-]+-[0-9a-f]{10}", value) is None:
        raise wrong(
            f"{value!r} names no change; use a candidate id, a pull request as '#12', or seven digits of a commit"
        )
    return value


JiraProject = Annotated[str, AfterValidator(_check_jira_project)]
ChangeName = Annotated[str, AfterValidator(_check_change_name)]
TaskCategory = Literal["single_file_repair", "multi_file_feature", "dependency_chore", "test_only", "other"]


class RepositoryConfig(ConfigModel):
    """A repository to mine. Its name is the name of its file."""

    name: Slug = Field(description="the name of the file, without `.yaml`")
    source: Argument = Field(description="a path from the workspace's top, or a URL")
    mainline: Argument | None = Field(default=None, description="the branch to mine; else that of HEAD")
    runner: RunnerConfig = Field(description="how the tests are run")
    environment: EnvironmentConfig = Field(default=EnvironmentConfig(), description="the image of the tests")
    paths: PathRules = Field(default=PathRules(), description="which files are tests, source or generated")
    public: bool = Field(
        default=False, description="whether anyone can read it, and models may thus have seen its changes"
    )
    owners: tuple[Owner, ...] = Field(
        default=(), description="who answers for it, as team:payments or an e-mail address; the UI shows them"
    )
    issues: Path | None = Field(default=None, description="JSONL of issues, from the workspace's top")
    forge: ForgeConfig | None = Field(default=None, description="where `evalpipe issues export` reads them")
    jira_projects: tuple[JiraProject, ...] = Field(default=(), description="Jira projects whose keys are issues of it")
    categories: dict[ChangeName, TaskCategory] = Field(
        default={}, description="changes whose category the team decides, by candidate id, `#12` or commit"
    )
    max_files: Count = Field(default=25, description="a change with more files, generated ones aside, is no candidate")
    require_issue: bool = Field(default=False, description="whether a candidate must name an issue")
    style: Text | None = Field(
        default=None,
        description="a shell command that ends with 0 when style and lint are in order; a column beside the verdict",
    )
    validation: ValidationConfig = Field(default=ValidationConfig(), description="limits of a validation run")

    @property
    def source_is_url(self) -> bool:
        """Whether `source` is a URL or an scp-like address, and not a path."""
        return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/\s]+@[^/:\s]+:", self.source) is not None


def resolve_base_image(environment: EnvironmentConfig) -> str:
    """The base image of a template that builds on one: the file's, else the machine's, else the template's own.

    The machine names its own in EVALPIPE_BASE_IMAGE for templates with Python, and in EVALPIPE_BASE_IMAGE_<TEMPLATE>
    for each other one. Raises KeyError for a template that has no base.
    """
    variable = BASE_IMAGE_VARIABLE
    if environment.template not in PIP_TEMPLATES:
        variable += f"_{environment.template.upper()}"
    return environment.base_image or os.environ.get(variable) or DEFAULT_BASE_IMAGES[environment.template]
