"""The `runner` of `data/repos/<name>.yaml`: how a repository's tests are run."""

from typing import Literal, Self

from pydantic import Field, model_validator

from evalpipe.config.values import Argument, ConfigModel, Glob, Text, refuse

RunnerName = Literal[
    "pytest", "unittest", "go", "cargo", "nextest", "maven", "gradle", "jest", "vitest", "mocha", "node", "generic"
]


class CanaryConfig(ConfigModel):
    """A test that must fail, for `name: generic`: whatever turns failures into passes turns it too."""

    file: Glob = Field(description="the file that is laid into the tree, from its top")
    text: Text = Field(description="what the file holds: one test that fails")
    test_id: Text = Field(description="the id that the report has of that test")


class RunnerConfig(ConfigModel):
    """The test runner inside the container."""

    name: RunnerName = Field(description="the test runner")
    python: Argument = Field(default="python3", description="the container's interpreter that runs the tests")
    arguments: tuple[Text, ...] = Field(default=(), description="arguments added to every call of the runner")
    prepare: tuple[Text, ...] = Field(
        default=(), description="shell commands run in the tree before the tests, without network, as `npm run build`"
    )
    command: Text | None = Field(default=None, description="the shell command that runs the tests, of `generic`")
    report_format: Literal["junit", "ctrf", "tap"] | None = Field(default=None, description="what the command leaves")
    reports: tuple[Glob, ...] = Field(
        default=(), description="globs of the report files; none for TAP that the command prints"
    )
    canary: CanaryConfig | None = Field(default=None, description="the test that must fail, of `generic`")

    @model_validator(mode="after")
    def _what_generic_needs(self) -> Self:
        if self.name == "generic":
            faults = [
                (name, "is missing: `name: generic` needs it")
                for name in ("command", "report_format", "canary")
                if getattr(self, name) is None
            ]
            if self.report_format in ("junit", "ctrf") and not self.reports:
                faults.append(("reports", f"is missing: where does the command leave its {self.report_format} files?"))
            if self.arguments:
                faults.append(("arguments", "has no use with `name: generic`; write them into `command`"))
        else:
            faults = [
                (name, f"belongs to `name: generic`; {self.name} needs none")
                for name in ("command", "report_format", "reports", "canary")
                if getattr(self, name)
            ]
        refuse(faults)
        return self
