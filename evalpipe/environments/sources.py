"""What an environment is made from, and the key under which candidates share one."""

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from evalpipe.environments.recipe import ProjectTree, Recipe
from evalpipe.sandbox import FileEntry

KEY_VERSION = 2
"""Part of every build key: raise it when the same source is built otherwise."""


class BaseTree(ProjectTree, Protocol):
    """The tree of a base commit, with what a builder needs of it."""

    @property
    def commit(self) -> str:
        """The commit's full id."""

    def object_id(self, path: bytes) -> str | None:
        """What stands for the content at `path`; None for nothing."""

    def files(self) -> Iterator[FileEntry]:
        """Every file with its content."""


@dataclass(frozen=True, slots=True)
class RecipeSource:
    """An environment that `recipe` builds on the image `base`, with the base commit's `tree`.

    `packages` and `setup` are the team's own, which the recipe's template has worked into its steps.
    """

    base: str
    recipe: Recipe
    tree: BaseTree
    packages: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        return self.base


@dataclass(frozen=True, slots=True)
class DockerfileSource:
    """An image of a team's own Dockerfile: its name, and every file of its folder, which is the build context."""

    dockerfile: str
    context: Mapping[str, bytes]

    @property
    def reference(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class ImageSource:
    """A finished image of the team's, used as it is."""

    image: str

    @property
    def reference(self) -> str:
        return self.image


EnvironmentSource = RecipeSource | DockerfileSource | ImageSource


def build_key(source: EnvironmentSource, sandbox: str, base_digest: str) -> str:
    """SHA-256 (hex) of all that decides the result: the content of the base and of files, not their names."""
    content = {"version": KEY_VERSION, "sandbox": sandbox, "base": base_digest, **_content(source)}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _content(source: EnvironmentSource) -> dict[str, Any]:
    if isinstance(source, ImageSource):
        return {"template": "image"}
    if isinstance(source, DockerfileSource):
        return {"template": "dockerfile", "dockerfile": source.dockerfile, "context": _digests(source.context)}
    recipe = source.recipe
    return {
        "template": recipe.template,
        "template_version": recipe.version,
        "steps": recipe.steps,
        "env": dict(recipe.env),
        "files": _digests(recipe.files),
        "decided_by": {path.hex(): source.tree.object_id(path) for path in recipe.decided_by},
        "keeps": recipe.keeps,
        "check": recipe.check,
        "packages": source.packages,
        "setup": source.setup,
    }


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}


def definition_text(source: EnvironmentSource) -> str:
    """What is built, for people: the steps with their environment, or the Dockerfile."""
    if isinstance(source, ImageSource):
        return ""
    if isinstance(source, DockerfileSource):
        return source.context[source.dockerfile].decode(errors="replace")
    recipe = source.recipe
    lines = [f"# template {recipe.template}, version {recipe.version}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in recipe.env.items()]
    lines += [f"# file {path}" for path in recipe.files]
    lines += [step.rstrip("\n") for step in recipe.steps]
    return "\n".join(lines) + "\n"
