"""Template `rust`: crates fetched, and those that are not the project's own compiled for its tests.

Cargo writes its target folder, and nobody can write in an image: each box gets a copy. Links would do until a compiler
writes over what one points to. Nothing compiled of the project itself stays: Cargo compares times of files, and would
take what was compiled from the base for what a change makes of it.
"""

import os
import posixpath
import shlex
from collections.abc import Collection

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, NoRecipe, Project, Recipe
from evalpipe.environments.templates.additions import altered_files, fetching_again, laid_files
from evalpipe.environments.templates.cargo_manifests import MANIFEST, CargoWorkspace, ask_alike, cargo_workspaces
from evalpipe.environments.templates.manifests import folder_of
from evalpipe.environments.templates.released_copies import newer_copies_script
from evalpipe.runners.preparation import PREPARE_SCRIPT

NAME = "rust"
VERSION = 1
_HOME = f"{BUILD_FOLDER}/cargo"
_TARGET = f"{BUILD_FOLDER}/target"
_BOX_TARGET = "/work/cache/target"

_PREPARE = f"""#!/bin/sh
mkdir -p {_BOX_TARGET}
cp -R --preserve=timestamps {_TARGET}/. {_BOX_TARGET}
"""

# With rustup, a file of the project could name a toolchain that is not in the image.
_TOOLCHAIN = """if command -v rustup > /dev/null; then rustup override set "$(rustup default | cut -d ' ' -f 1)"; fi
cargo --version
for file in rust-toolchain rust-toolchain.toml; do
    if [ -f $file ]; then echo "evalpipe: the image's toolchain is used, whatever $file says:"; cat $file; fi
done"""

# Cargo cannot be told to leave out what is newer than a day, but the index says when each version was published. So
# the versions that are newer are taken out of its copy of the index, and it resolves with that copy alone. What only
# older versions depend on is missing from the copy and is fetched when Cargo asks for it.
# Format of the copy: https://docs.rs/cargo/latest/cargo/sources/registry/index/cache/
_AS_OF = r"""keep_older() {
    find "$CARGO_HOME"/registry/index/*/.cache -type f | while read -r file; do
        tr '\0' '\n' < "$file" | LC_ALL=C awk -v day="$1" '
            substr($0, 1, 1) != "{" { if (held) print text; text = $0; held = 1; next }
            { newer = match($0, /"pubtime": *"[0-9-]+/) && substr($0, RSTART + RLENGTH - 10, 10) > day
              if (newer) dropped++; else { print text; print }
              held = 0 }
            END { if (held) print text }' | tr '\n' '\0' > /tmp/older
        cat /tmp/older > "$file"
    done
}
fetch_index_of() {
    mkdir -p /tmp/one/src
    : > /tmp/one/src/lib.rs
    printf '[package]\nname = "evalpipe-one"\nversion = "0.0.0"\n[dependencies]\n%s = "*"\n' "$1" > /tmp/one/Cargo.toml
    (cd /tmp/one && rm -f Cargo.lock && cargo generate-lockfile --quiet) || true
}
lock_as_of() {
    cargo generate-lockfile --quiet
    keep_older "$1"
    until cargo generate-lockfile --offline 2> /tmp/resolve.log; do
        missing=$(sed -n 's/.*no matching package named `\([^`]*\)` found.*/\1/p' /tmp/resolve.log | head -n 1)
        if [ -z "$missing" ] || grep -qsxF "$missing" /tmp/missing; then cat /tmp/resolve.log; return 1; fi
        echo "$missing" >> /tmp/missing
        fetch_index_of "$missing"
        keep_older "$1"
    done
    cat /tmp/resolve.log
    rm -rf "$CARGO_HOME"/registry /tmp/missing
}"""

_FETCH = """host=$(rustc -vV | sed -n 's/^host: //p')
cargo fetch --locked --target "$host" || cargo fetch --target "$host"
awk -F '"' '/^name = /{n=$2} /^version = /{v=$2} /^source = /{print n "==" v}' Cargo.lock >> /tmp/crates.txt"""

# A crate of the project that does not build costs the others nothing.
_COMPILE = (
    "cargo test --workspace --no-run --no-fail-fast --offline || "
    "echo 'evalpipe: not all of it builds, which the tests will show'"
)

# The records and the results of one compilation have one hash in their names.
_REMOVE_OWN = """remove_own() {
    for record in "$CARGO_TARGET_DIR"/*/.fingerprint/"$1"-????????????????; do
        [ -d "$record" ] || continue
        profile=${record%%/.fingerprint/*}
        rm -rf "$profile"/deps/*-"${record##*-}"* "$profile"/build/"$1"-"${record##*-}" "$record"
    done
}"""

_FINISH = f"""sort -u /tmp/crates.txt > {PACKAGES_FILE}
cd {_TARGET}
rm -rf */incremental */examples doc tmp
find . -mindepth 2 -maxdepth 2 -type f -delete
# Cargo knows crates by the registry that they came from, so a mirror that stood for it has to go on doing so.
[ ! -f /work/.cargo/config.toml ] || cat /work/.cargo/config.toml >> "$CARGO_HOME/config.toml"
# From now on nothing is downloaded.
printf '[net]\\noffline = true\\n' >> "$CARGO_HOME/config.toml\""""


class RustTemplate:
    """See `Template`."""

    name = NAME

    def recipe(self, project: Project) -> Recipe:
        """The recipe of a tree with at least one Cargo.toml. Raises NoRecipe."""
        workspaces = cargo_workspaces(project.tree)
        if not workspaces:
            raise NoRecipe(
                "template `rust` found no Cargo.toml. If the sources are not built by Cargo, bring a Dockerfile: "
                "`template: dockerfile`"
            )
        unlocked = [space for space in workspaces if space.lock not in project.tree.paths]
        target = f"export CARGO_TARGET_DIR={_TARGET}"
        fetch = [_TOOLCHAIN, *([_AS_OF] if unlocked else [])]
        for space in workspaces:
            lock = f"lock_as_of {project.day.isoformat()}\n" if space in unlocked else ""
            fetch.append(_in_folder(space, lock + _FETCH))
        altered = _altered(project)
        again = [fetching_again(_fetching_change(project, altered))] if altered else []
        compiling = [
            target,
            _REMOVE_OWN,
            *(_in_folder(space, _COMPILE + "\n" + _remove_own(space)) for space in workspaces),
            _FINISH,
        ]
        return Recipe(
            NAME,
            VERSION,
            steps=(*project.setup, "\n".join(fetch), *again, "\n".join(compiling)),
            env={
                "CARGO_HOME": _HOME,
                "CARGO_TARGET_DIR": _BOX_TARGET,
                # Each box compiles once, so what would help the second time only costs.
                "CARGO_INCREMENTAL": "0",
                # Line numbers in backtraces, but not the variables for a debugger: a third of the size.
                "CARGO_PROFILE_DEV_DEBUG": "1",
            },
            files={PREPARE_SCRIPT: _PREPARE.encode(), **laid_files(altered)},
            decided_by=tuple(sorted({path for space in workspaces for path in space.deciding(project.tree.paths)})),
            check=newer_copies_script(
                {name: v for space in workspaces for name, v in space.versions.items()}, project.version
            ),
            keeps=tuple(os.fsdecode(space.lock) for space in unlocked),
        )


def _altered(project: Project) -> dict[bytes, bytes]:
    """The manifests and lock files that a change alters, when any of them asks for something else than before."""
    if project.change is None:
        return {}
    spaces = cargo_workspaces(project.change)
    altered = altered_files(project, [path for space in spaces for path in space.deciding(project.change.paths)])
    locks = {space.lock for space in spaces}
    manifests = [path for path in altered if posixpath.basename(path) == MANIFEST]
    asks = any(not ask_alike(project.tree, project.change, path) for path in manifests)
    return altered if asks or locks.intersection(altered) else {}


def _fetching_change(project: Project, altered: Collection[bytes]) -> str:
    assert project.change is not None  # it altered something
    lines = []
    for path in altered:
        # Cargo refuses a crate without sources, and those of a new crate are not here.
        if posixpath.basename(path) == MANIFEST and path not in project.tree.paths:
            source = shlex.quote(os.fsdecode(posixpath.join(folder_of(path), b"src")))
            lines.append(f"mkdir -p {source}\n: > {source}/lib.rs\necho 'fn main() {{}}' > {source}/main.rs")
    return "\n".join([_TOOLCHAIN, *lines, *(_in_folder(space, _FETCH) for space in cargo_workspaces(project.change))])


def _in_folder(workspace: CargoWorkspace, script: str) -> str:
    return f"(\ncd {shlex.quote(os.fsdecode(posixpath.join(b'.', workspace.folder)))}\n{script}\n)"


def _remove_own(workspace: CargoWorkspace) -> str:
    return "\n".join(f"remove_own {shlex.quote(name)}" for name in workspace.versions)
