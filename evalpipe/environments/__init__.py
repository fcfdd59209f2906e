"""Environments: what decides one, and how it is built."""

from evalpipe.environments.build import (
    BuildStatus,
    BuiltEnvironment,
    DockerEnvironmentBuilder,
    EnvironmentBuilder,
    ProcessEnvironmentBuilder,
)
from evalpipe.environments.definition import EnvironmentDefinition

__all__ = [
    "BuildStatus",
    "BuiltEnvironment",
    "DockerEnvironmentBuilder",
    "EnvironmentBuilder",
    "EnvironmentDefinition",
    "ProcessEnvironmentBuilder",
]
