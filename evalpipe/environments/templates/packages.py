"""Template `packages`: pip requirements and shell commands on a base image; the project itself is not installed.

For repositories whose tests need nothing of the project but its tree, and for teams that would rather list what an
environment holds than have it read from manifests: all candidates share one image.
"""

import shlex

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, Project, Recipe

NAME = "packages"
VERSION = 1
_VENV = f"{BUILD_FOLDER}/venv"


class PackagesTemplate:
    """See `Template`. It reads nothing of the tree, so every candidate has the same recipe."""

    name = NAME

    def recipe(self, project: Project) -> Recipe:
        """The recipe of the team's packages and setup commands."""
        if not project.packages:
            return Recipe(NAME, VERSION, steps=project.setup)
        python = f"{_VENV}/bin/python"
        install = (
            # The base's own packages stay visible, so a base that brings pytest needs nothing here.
            f"python3 -m venv --system-site-packages {_VENV}\n"
            f"{python} -m {shlex.join(['pip', *pip_arguments(project.packages)])}\n"
            f"{python} -m pip list --format=freeze --disable-pip-version-check > {PACKAGES_FILE}"
        )
        return Recipe(NAME, VERSION, steps=(install, *project.setup), env={"PATH": f"{_VENV}/bin:$PATH"})


def pip_arguments(packages: tuple[str, ...]) -> list[str]:
    """Arguments of pip that install `packages` and nothing that was not asked for."""
    return ["install", "--no-input", "--disable-pip-version-check", "--quiet", "--", *packages]
