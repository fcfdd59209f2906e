"""Environments: what decides one, and how it is built."""

from evalpipe.environments.build import (
    SETTLED,
    BaseMissing,
    BuildSettings,
    BuildStatus,
    BuiltEnvironment,
    EnvironmentBuilder,
    PlannedBuild,
    SpareEnvironment,
)
from evalpipe.environments.commit_tree import ChangeTree, CommitTree
from evalpipe.environments.docker_builder import DockerEnvironmentBuilder
from evalpipe.environments.process_builder import ProcessEnvironmentBuilder
from evalpipe.environments.recipe import NoRecipe, Project, Recipe, Template
from evalpipe.environments.sources import (
    DockerfileSource,
    EnvironmentSource,
    ImageSource,
    RecipeSource,
    build_key,
    definition_text,
)
from evalpipe.environments.templates import TEMPLATES

__all__ = [
    "SETTLED",
    "TEMPLATES",
    "BaseMissing",
    "BuildSettings",
    "BuildStatus",
    "BuiltEnvironment",
    "ChangeTree",
    "CommitTree",
    "DockerEnvironmentBuilder",
    "DockerfileSource",
    "EnvironmentBuilder",
    "EnvironmentSource",
    "ImageSource",
    "NoRecipe",
    "PlannedBuild",
    "ProcessEnvironmentBuilder",
    "Project",
    "Recipe",
    "RecipeSource",
    "SpareEnvironment",
    "Template",
    "build_key",
    "definition_text",
]
