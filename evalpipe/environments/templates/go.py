"""Template `go`: the modules that the tree asks for downloaded, and all that its tests build on compiled.

Go writes its build cache, and nobody can write in an image. It is therefore kept in two parts: what was compiled, to
which a box gets links, and the small records of what belongs to which build, of which it gets copies. For the 84 MB
of the standard library that is 0.1 s and no room, where compiling it again took 40 s.
"""

import os
import posixpath
import re
import shlex
from dataclasses import dataclass

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, NoRecipe, Project, ProjectTree, Recipe
from evalpipe.environments.templates.additions import altered_files, fetching_again, laid_files
from evalpipe.environments.templates.manifests import files_named, folder_of, joined, nearest
from evalpipe.runners.preparation import PREPARE_SCRIPT

NAME = "go"
VERSION = 1
_HOME = f"{BUILD_FOLDER}/go"
_BOX_CACHE = "/work/cache/go"
# Go's own rule for what `./...` leaves out: https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns
_LEFT_OUT = re.compile(rb"(?:^|/)(?:vendor|testdata|[_.][^/]*)/")
_DECIDING = (b"go.mod", b"go.sum", b"go.work", b"go.work.sum")
_USE = re.compile(rb"^\s*use\s+(?:\(([^)]*)\)|(\S+))", re.MULTILINE)
_COMMENT = re.compile(rb"//[^\n]*")

_PREPARE = f"""#!/bin/sh
mkdir -p {_BOX_CACHE}
cp -Rs {_HOME}/compiled/. {_BOX_CACHE}
cp -R {_HOME}/records/. {_BOX_CACHE}
# Once a day Go drops what was not used for five days: not on the first day of a box.
date +%s > {_BOX_CACHE}/trim.txt
"""

# Before Go 1.16 every command completed a go.mod or go.sum that lacks something; only such a project needs that.
_COMPLETE = """if ! go list -deps -test ./... > /dev/null 2> /tmp/go-list.log; then
    if GOFLAGS=-mod=mod go list -deps -test ./... > /dev/null 2>&1; then
        grep -qs mod=mod "$GOENV" || echo GOFLAGS=-mod=mod >> "$GOENV"
    else
        cat /tmp/go-list.log
    fi
fi"""

# Compiled and linked, but not run. A package that does not build costs the others nothing.
_COMPILE = "go test -vet=off -exec /bin/true ./... || echo 'evalpipe: not all of it builds, which the tests will show'"

_LIST_PACKAGES = (
    "go list -m -f '{{if not .Main}}{{.Path}}=={{.Version}}{{end}}' all >> /tmp/go-packages.txt "
    "|| echo 'evalpipe: the modules cannot be listed'"
)

_FINISH = f"""cd {_HOME}
touch /tmp/go-packages.txt
sort -u /tmp/go-packages.txt | sed '/^$/d' > {PACKAGES_FILE}
rm -f cache/trim.txt
mkdir records
(cd cache && find . -name '*-a' -exec cp --parents -t ../records {{}} +)
find cache -name '*-a' -delete
mv cache compiled
# From now on nothing is downloaded, whatever the project's settings or those of the user say.
printf 'GOPROXY=off\\nGOSUMDB=off\\n' >> "$GOENV"
go env GOFLAGS GOPROXY"""


@dataclass(frozen=True, slots=True)
class GoModule:
    """A module: its folder from the top, whether it has test files, whether a go.work names it, and the list in its
    vendor folder, if any.
    """

    folder: bytes
    tested: bool
    in_workspace: bool
    vendor_list: bytes | None


class GoTemplate:
    """See `Template`."""

    name = NAME

    def recipe(self, project: Project) -> Recipe:
        """The recipe of a tree with at least one go.mod. Raises NoRecipe."""
        modules = go_modules(project.tree)
        # Such a setting would hold for every module, and vendor folders and workspaces refuse it.
        may_complete = not any(module.in_workspace or module.vendor_list for module in modules)
        cache = f"export GOCACHE={_HOME}/cache"
        fetch = "\n".join([cache, *(_fetching(module, may_complete=may_complete) for module in modules)])
        build = "\n".join([cache, *(_in_module(module, _COMPILE) for module in modules), _FINISH])
        altered = _altered(project)
        again = [fetching_again("\n".join([cache, *_fetching_change(project)]))] if altered else []
        vendored = {module.vendor_list for module in modules if module.vendor_list}
        return Recipe(
            NAME,
            VERSION,
            steps=(*project.setup, fetch, *again, build),
            env={
                "GOTOOLCHAIN": "local",
                "GOMODCACHE": f"{_HOME}/modules",
                "GOENV": f"{_HOME}/env",
                "GOCACHE": _BOX_CACHE,
            },
            files={PREPARE_SCRIPT: _PREPARE.encode(), f"{_HOME}/env": b"", **laid_files(altered)},
            decided_by=tuple(sorted({*files_named(_seen(project.tree), *_DECIDING), *vendored})),
        )


def go_modules(tree: ProjectTree) -> list[GoModule]:
    """Every module that `./...` of the top, or of a folder below, can reach; in the order of their folders.

    Raises NoRecipe when there is none.
    """
    seen = _seen(tree)
    folders = {folder_of(path) for path in files_named(seen, b"go.mod")}
    if not folders:
        raise NoRecipe(
            "template `go` found no go.mod. A project from before Go modules needs a Dockerfile of its own: "
            "`template: dockerfile`"
        )
    tested = {nearest(path, folders) for path in seen if path.endswith(b"_test.go")}
    members = _workspace_members(tree)
    modules = []
    for folder in sorted(folders):
        # In a workspace the vendor folder is the one beside go.work.
        vendor = posixpath.join(members.get(folder, folder), b"vendor/modules.txt")
        vendor_list = vendor if vendor in tree.paths else None
        modules.append(GoModule(folder, folder in tested, folder in members, vendor_list))
    return modules


def _seen(tree: ProjectTree) -> list[bytes]:
    return [path for path in tree.paths if not _LEFT_OUT.search(path)]


def _workspace_members(tree: ProjectTree) -> dict[bytes, bytes]:
    """The folders of modules that a go.work names, with the folder of that go.work."""
    members = {}
    for path in files_named(_seen(tree), b"go.work"):
        for block, single in _USE.findall(_COMMENT.sub(b"", tree.read(path))):
            for name in (block or single).split():
                folder = joined(folder_of(path), name.strip(b'"`'))
                if folder is not None:
                    members[folder] = folder_of(path)
    return members


def _fetching(module: GoModule, *, may_complete: bool) -> str:
    # First the command that says, and only says, when the project wants a newer Go than the image has.
    lines = ["go list -m"]
    if module.vendor_list is None:
        lines += ["go mod download", *([_COMPLETE] if may_complete else []), _LIST_PACKAGES]
    return _in_module(module, "\n".join(lines))


def _altered(project: Project) -> dict[bytes, bytes]:
    """The manifests that a change alters; with a vendor folder it brings its dependencies itself."""
    if project.change is None or any(module.vendor_list for module in go_modules(project.change)):
        return {}
    return altered_files(project, files_named(_seen(project.change), *_DECIDING))


def _fetching_change(project: Project) -> list[str]:
    assert project.change is not None  # it altered something
    return [_fetching(module, may_complete=False) for module in go_modules(project.change)]


def _in_module(module: GoModule, script: str) -> str:
    folder = shlex.quote(os.fsdecode(b"./" + module.folder))
    # A module that the go.work above it does not name is refused until the workspace is taken away.
    workspace = "" if module.in_workspace else "export GOWORK=off\n"
    # What a module without tests lacks, such as a newer Go, is no reason to do without those that have some.
    lenient = "" if module.tested else " || echo 'evalpipe: this module has no tests; going on without it'"
    return f"(\ncd {folder}\n{workspace}{script}\n){lenient}"
