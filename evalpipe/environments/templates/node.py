"""Template `node`: the packages of an npm, pnpm or yarn project by its lock, or as of the day where it has none.

Packages are not copied into each box, which would take seconds: the image keeps them, and a box gets folders
node_modules that hold a link for each package. What the project itself compiles, such as TypeScript, is for
`runner.prepare`: it belongs to the tree under test and not to its environment.
"""

import os
import posixpath
import shlex
from importlib import resources

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, TREE_FOLDER, NoRecipe, Project, Recipe
from evalpipe.environments.templates.node_additions import LaidOver, merged_manifests
from evalpipe.environments.templates.node_manifests import NodeProject, Tool, node_projects
from evalpipe.environments.templates.released_copies import newer_copies_script
from evalpipe.runners.preparation import INSTALLED_FOLDER

NAME = "node"
VERSION = 1
_HOME = f"{BUILD_FOLDER}/node"
_TOOLS = f"{_HOME}/tools"
_LAY, _SCRIPTS = f"{_HOME}/lay_node_modules.cjs", f"{_HOME}/run_install_scripts.cjs"
_PACKAGE_OF_TOOL = {Tool.PNPM: "pnpm", Tool.YARN_CLASSIC: "yarn", Tool.YARN_BERRY: "@yarnpkg/cli-dist"}

# Browsers and other programs that install scripts would fetch from places of their own, and hooks of git.
_NO_DOWNLOADS = {
    "PUPPETEER_SKIP_DOWNLOAD": "1",
    "PUPPETEER_SKIP_CHROMIUM_DOWNLOAD": "1",
    "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    "CYPRESS_INSTALL_BINARY": "0",
    "ELECTRON_SKIP_BINARY_DOWNLOAD": "1",
    "HUSKY": "0",
    "HUSKY_SKIP_INSTALL": "1",
}

# Native packages are compiled against the headers beside the program, where there are any.
_BEGIN = """prefix=$(dirname "$(dirname "$(command -v node)")")
if [ -f "$prefix/include/node/node.h" ]; then export npm_config_nodedir="$prefix"; fi
export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false npm_config_engine_strict=false
export YARN_ENABLE_TELEMETRY=0 YARN_ENABLE_GLOBAL_CACHE=true SKIP_YARN_COREPACK_CHECK=1 ADBLOCK=1
node --version"""

# A lock that an older npm wrote, or that lags behind its manifest, is refused; then the manifest decides what it
# lacks, as of the day.
_NPM_LOCKED = """npm ci --ignore-scripts ||
    npm ci --ignore-scripts --legacy-peer-deps ||
    npm install --ignore-scripts --legacy-peer-deps --no-save"""
_NPM = """npm install --ignore-scripts --no-package-lock --before={before} ||
    npm install --ignore-scripts --no-package-lock --before={before} --legacy-peer-deps"""
_PNPM_LOCKED = """pnpm install --frozen-lockfile --ignore-scripts ||
    pnpm install --no-frozen-lockfile --ignore-scripts"""
# pnpm counts in minutes from now.
_PNPM = """minutes=$(( ($(date +%s) - $(date -d {before} +%s)) / 60 ))
pnpm install --no-frozen-lockfile --ignore-scripts --config.minimumReleaseAge="$minutes\""""
# Two that fill the same cache at once take each other's files for broken ones.
_YARN_LOCKED = """mkdir -p "$YARN_CACHE_FOLDER"
alone="file:$YARN_CACHE_FOLDER/.mutex"
yarn install --mutex "$alone" --frozen-lockfile --ignore-engines --non-interactive --ignore-scripts ||
    yarn install --mutex "$alone" --ignore-engines --non-interactive --ignore-scripts"""
_BERRY = """yarn install --immutable || yarn install --mode=skip-build"""
_PNPM_SCRIPTS = "pnpm rebuild || echo 'evalpipe: some install scripts failed; going on without'"

# patch-package and generators of code; whatever else it does, tests may do without.
_ROOT_SCRIPT = """if grep -qs '"postinstall"' package.json; then
    npm run postinstall || echo "evalpipe: the project's own postinstall failed; going on without"
fi"""

_FINISH = f"""mkdir -p {INSTALLED_FOLDER}
find . -path '*/node_modules/*' -name package.json -not -path '*/.cache/*' -print0 |
    xargs -0 -r grep -lE '"version"' | sort > /tmp/manifests.txt
node -e 'const fs = require("fs");
const names = new Set();
for (const path of fs.readFileSync("/tmp/manifests.txt", "utf8").split("\\n").filter(Boolean)) {{
    if (!/node_modules\\/(@[^\\/]+\\/)?[^\\/]+\\/package.json$/.test(path)) continue;
    try {{ const {{ name, version }} = JSON.parse(fs.readFileSync(path)); names.add(name + "==" + version) }} catch {{}}
}}
fs.writeFileSync("{PACKAGES_FILE}", [...names].sort().join("\\n") + "\\n")'
node {_LAY} /node_modules {_HOME}/tree {INSTALLED_FOLDER}"""


class NodeTemplate:
    """See `Template`."""

    name = NAME

    def recipe(self, project: Project) -> Recipe:
        """The recipe of a tree with at least one package.json. Raises NoRecipe."""
        laid = merged_manifests(project)
        projects = node_projects(LaidOver(project.tree, laid))
        if not projects:
            raise NoRecipe(
                "template `node` found no package.json. If the packages are installed by something else, bring a "
                "Dockerfile: `template: dockerfile`"
            )
        before = f"{project.day.isoformat()}T23:59:59Z"
        install = [_BEGIN, *_tools(projects), *(_installing(one, before) for one in projects)]
        env = {
            **_NO_DOWNLOADS,
            "PATH": f"{_TOOLS}/bin:$PATH",
            # Plug'n'Play would need every call of every tool to go through yarn.
            **({"YARN_NODE_LINKER": "node-modules"} if any(one.tool is Tool.YARN_BERRY for one in projects) else {}),
        }
        return Recipe(
            NAME,
            VERSION,
            steps=(*project.setup, "\n".join(install), _FINISH),
            env=env,
            files={
                **{path: _program(path) for path in (_LAY, _SCRIPTS)},
                **{f"{TREE_FOLDER}/{os.fsdecode(path)}": data for path, data in laid.items()},
            },
            decided_by=tuple(
                sorted({path for one in projects for path in one.deciding}.intersection(project.tree.paths))
            ),
            check=newer_copies_script(
                {name: v for one in projects for name, v in one.own.items() if name}, project.version
            ),
            # By this file yarn knows that it has been run.
            keeps=(".yarn/install-state.gz",) if any(one.tool is Tool.YARN_BERRY for one in projects) else (),
        )


def _tools(projects: list[NodeProject]) -> list[str]:
    packages = sorted({f"{_PACKAGE_OF_TOOL[one.tool]}@{one.version}" for one in projects if one.version})
    return [f"npm install --global --prefix {_TOOLS} {shlex.quote(package)}" for package in packages]


def _installing(project: NodeProject, before: str) -> str:
    folder = shlex.quote(os.fsdecode(posixpath.join(b".", project.folder)))
    rebuild = f"node {_SCRIPTS}"
    match project.tool, project.lock:
        case Tool.NPM, None:
            steps = [_NPM.format(before=before), rebuild]
        case Tool.NPM, _:
            steps = [_NPM_LOCKED, rebuild]
        case Tool.PNPM, None:
            steps = [_PNPM.format(before=before), _PNPM_SCRIPTS]
        case Tool.PNPM, _:
            steps = [_PNPM_LOCKED, _PNPM_SCRIPTS]
        case Tool.YARN_CLASSIC, _:
            steps = [_YARN_LOCKED, rebuild]
        case _:
            steps = [_BERRY]
    return f"(\ncd {folder}\n" + "\n".join([*steps, _ROOT_SCRIPT]) + "\n)"


def _program(path: str) -> bytes:
    return resources.files("evalpipe.environments.templates").joinpath("inside", posixpath.basename(path)).read_bytes()
