"""Runs a recipe in a build container: tree and files laid in, steps run, what tests need kept, and looked over."""

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from evalpipe.environments.build import SETTINGS_FOLDER, BuildSettings, BuildStatus, log_end
from evalpipe.environments.build_container import BuildContainer, BuildTimeout, StepFailed
from evalpipe.environments.checks import newer_commits, released_copies
from evalpipe.environments.kept_files import kept_paths, moving_script
from evalpipe.environments.log_faults import failed_status, was_not_released_yet, why_pip_saw_nothing
from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, TREE_FOLDER
from evalpipe.environments.sources import RecipeSource
from evalpipe.runners.preparation import INSTALLED_FOLDER
from evalpipe.sandbox import REGULAR, FileEntry
from evalpipe.sandbox.container import USER

PACKAGES_BYTES = 4 * 1024 * 1024
# Java, ssh and whatever else asks who it is stumbles over a user that no file names.
_NAME_OF_THE_USER = (
    f"grep -qE '^([^:]*:){{2}}{USER}:' /etc/passwd || echo 'evalpipe:x:{USER}:{USER}::/tmp:/bin/sh' >> /etc/passwd"
)


class BuildResult(NamedTuple):
    """How a build ended: its status, the image's id, the end of its log, and what it installed."""

    status: BuildStatus
    image: str | None = None
    log: str = ""
    packages: tuple[str, ...] = ()


def run_recipe(
    container: BuildContainer, source: RecipeSource, newer: Collection[str], settings: BuildSettings
) -> BuildResult:
    """Do all that `source` says, so that `container` can be committed when the status is BUILT.

    `newer` are commits that no git repository in the image may have. Raises SandboxError.
    """
    recipe, doing = source.recipe, "laying the files in"
    try:
        container.lay(TREE_FOLDER, source.tree.files() if recipe.decided_by else ())
        links = [f"ln -s {SETTINGS_FOLDER}/{target} {place}" for place, target in settings.links.items()]
        container.run("\n".join([f"mkdir -p {BUILD_FOLDER}", *links]))
        container.lay_absolute(recipe.files)
        for number, step in enumerate(recipe.steps, start=1):
            doing = f"step {number} of {len(recipe.steps)} failed: {step.strip().splitlines()[0]}"
            container.run(step, folder=TREE_FOLDER)
        leak = released_copies(container, recipe.check) if recipe.check else ""
        doing = "what the steps left could not be kept"
        _keep(container, source)
        container.run("\n".join(["true", *(f"rm -f {place}" for place in settings.links)]))
        leak = leak or newer_commits(container, newer)
        packages = listed_packages(container.read(PACKAGES_FILE, PACKAGES_BYTES))
    except StepFailed as error:
        doing = f"out of memory; {doing}" if container.ran_out_of_memory() else doing
        output = _with_what_pip_hides(container)
        failed = failure(log_end(output, settings, last=f"{doing} ({error})"))
        unreleased = failed.status is BuildStatus.FAILED and was_not_released_yet(output.decode(errors="replace"))
        return failed._replace(status=BuildStatus.UNRELEASED) if unreleased else failed
    except BuildTimeout as error:
        log = log_end(container.output.content(), settings, last=str(error))
        return BuildResult(BuildStatus.TIMEOUT, log=log)
    if leak:
        return BuildResult(BuildStatus.LEAKS_PROJECT, log=settings.masked(leak))
    return BuildResult(BuildStatus.BUILT, log=log_end(container.output.content(), settings), packages=packages)


def _with_what_pip_hides(container: BuildContainer) -> bytes:
    """The output of a build that failed; a refusal that pip kept to itself is below it."""
    output = container.output.content()
    question = why_pip_saw_nothing(output.decode(errors="replace"))
    if question is None:
        return output
    with suppress(BuildTimeout):
        container.run(question)
    return container.output.content()


def failure(log: str) -> BuildResult:
    """The result of a build that failed with this log."""
    return BuildResult(failed_status(log), log=log)


def listed_packages(data: bytes | None) -> tuple[str, ...]:
    """The lines of PACKAGES_FILE, sorted."""
    lines = (data or b"").decode(errors="replace").splitlines()
    return tuple(sorted({line.strip() for line in lines if line.strip()}))


def _keep(container: BuildContainer, source: RecipeSource) -> None:
    """Move what the steps wrote for the tests out of the tree, and remove the tree and what else is of no use."""
    if source.recipe.keeps:
        listing = bytearray()
        container.run("find . ! -type d -print0", folder=TREE_FOLDER, capture=listing.extend)
        found = [path.removeprefix(b"./") for path in bytes(listing).split(b"\0")[:-1]]
        kept = kept_paths(found, source.tree.paths, source.recipe.keeps)
        container.lay(SETTINGS_FOLDER, [FileEntry(b"keep.sh", REGULAR, moving_script(kept, INSTALLED_FOLDER))])
        container.run(f". {SETTINGS_FOLDER}/keep.sh", folder=TREE_FOLDER)
    container.run(f"rm -rf {TREE_FOLDER}\nchmod 0777 /work\nfind /tmp -xdev -mindepth 1 -delete\n{_NAME_OF_THE_USER}")
