"""The images in which the runners' hard cases run: a toolchain of `.ci/engine`, and what a recipe adds to it.

They are built as those of candidates are, once for each engine, since evalpipe finds them again by their build key.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import pytest

from evalpipe.config.network import BUNDLE_VARIABLES
from evalpipe.environments import DockerEnvironmentBuilder, Project, Recipe, RecipeSource, Template
from evalpipe.environments.build import BuildStatus
from evalpipe.environments.settings import Network, build_settings
from evalpipe.sandbox import REGULAR, DockerSandbox, FileEntry
from evalpipe_tests.needed import unavailable

INSTANCE = "conformance"


@dataclass(frozen=True)
class Tree:
    """Files as the tree of a base commit."""

    content: Mapping[bytes, bytes] = field(default_factory=dict)
    commit: str = "0" * 40

    @property
    def paths(self) -> Collection[bytes]:
        return self.content.keys()

    def read(self, path: bytes) -> bytes:
        return self.content[path]

    def object_id(self, path: bytes) -> str | None:
        return hashlib.sha1(self.content[path]).hexdigest() if path in self.content else None

    def files(self) -> Iterator[FileEntry]:
        return (FileEntry(path, REGULAR, content) for path, content in self.content.items())


@dataclass(frozen=True)
class TestEnvironment:
    """A toolchain (`go`, `rust`, `node`, `java`, or nothing for the base image), and a recipe to build on it."""

    __test__ = False

    toolchain: str = ""
    recipe: Recipe | None = None
    tree: Tree = Tree()


def by_template(
    toolchain: str,
    template: Template,
    files: Mapping[str, bytes],
    setup: tuple[str, ...] = (),
    env: Mapping[str, str] = MappingProxyType({}),
) -> TestEnvironment:
    """The environment that a template makes for a project of these files, after the setup commands of a team.

    `env` stays in the image beside the variables of the template.
    """
    tree = Tree({path.encode(): content for path, content in files.items()})
    recipe = template.recipe(Project(tree, dt.date(2026, 1, 1), version=None, setup=setup))
    return TestEnvironment(toolchain, replace(recipe, env={**recipe.env, **env}), tree)


class EnvironmentImages:
    """Finds or builds the image of an environment."""

    def __init__(self, sandbox: DockerSandbox, base_image: str) -> None:
        self._sandbox, self._base_image = sandbox, base_image
        self._builder: DockerEnvironmentBuilder | None = None

    def image(self, environment: TestEnvironment) -> str:
        """Its id. Skips the test, or fails where Docker is required, when there is no such toolchain."""
        base = self.toolchain(environment.toolchain)
        if environment.recipe is None:
            return base
        return self.built(RecipeSource(base, environment.recipe, environment.tree))

    def built(self, source: RecipeSource) -> str:
        """The id of the image that `source` makes."""
        if self._builder is None:
            self._builder = DockerEnvironmentBuilder(INSTANCE, build_settings(_network()))
        built = self._builder.build(self._builder.plan(source))
        if built.status is not BuildStatus.BUILT or built.image_digest is None:
            pytest.fail(f"the environment cannot be built: {built}")
        return built.image_digest

    def toolchain(self, name: str) -> str:
        """The id of the image of a toolchain; see `image`."""
        if not name:
            return self._base_image
        variable = {"java": "MAVEN"}.get(name, name.upper())
        wanted = os.environ.get(f"EVALPIPE_BASE_IMAGE_{variable}", f"evalpipe-base:{name}")
        for image in self._sandbox.client.images.list():
            if wanted in (image.id, *image.tags):
                return str(image.id)
        unavailable(f"there is no image {wanted}")


def _network() -> Network:
    """What the environment of this machine says of certificates and proxies."""
    bundles = (Path(os.environ[name]) for name in BUNDLE_VARIABLES if name in os.environ)
    bundle = next((path for path in bundles if path.is_file()), None)
    return Network(
        certificates=bundle.read_bytes() if bundle else None,
        proxy=os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"),
        no_proxy=os.environ.get("NO_PROXY") or os.environ.get("no_proxy"),
    )
