"""Template `gradle`: a user home of Gradle with all that `gradle test` wants, and the Gradle of the wrapper in it.

Gradle writes its user home, and nobody can write in an image. A box gets copies of the small parts, and links to the
large ones, which never change: artifacts and Gradle itself. Every task that tests wait for is run, but no test.
"""

import os
import posixpath
import re
import shlex

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, NoRecipe, Project, ProjectTree, Recipe
from evalpipe.environments.templates.additions import altered_files, fetching_again, laid_files
from evalpipe.environments.templates.java_trust import trust_files, trust_script
from evalpipe.environments.templates.manifests import folder_of, outermost
from evalpipe.runners.preparation import PREPARE_SCRIPT

NAME = "gradle"
VERSION = 1
_FOLDER = f"{BUILD_FOLDER}/gradle"
# The same while it is filled: before Gradle 6.1 its records hold absolute paths.
_BOX_HOME = "/work/cache/gradle"
_INIT = f"{_FOLDER}/fetch.gradle"
_BUILD = re.compile(rb"(?:^|/)(?:build|settings)\.gradle(?:\.kts)?\Z")
_DECIDING = re.compile(
    rb"\.gradle(?:\.kts)?\Z|\.versions\.toml\Z|\.lockfile\Z|(?:^|/)gradle\.properties\Z"
    rb"|(?:^|/)gradle/(?:verification-metadata\.xml|dependency-locks/.*|wrapper/gradle-wrapper\.properties)\Z"
)
# Builds of the build itself, by Gradle's own name and by the one that its guides use.
_BUILD_LOGIC = re.compile(rb"(?:^|/)(?:buildSrc|build-logic)/")
_FIXTURE = re.compile(rb"(?:^|/)src/")
_UNAVAILABLE = (
    "Could not (GET|HEAD|download|get resource|find [^ ]+:)|Plugin .* was not found|No cached version .* available"
)
# A build that this Gradle or Java cannot read, such as one that wants a newer one: no module of it is ever tested.
_UNREADABLE = (
    "A problem occurred (evaluating|configuring) |Could not compile (build|settings) file"
    "|Unsupported class file major version|Could not determine java version"
)

_PREPARE = f"""#!/bin/sh
mkdir -p {_BOX_HOME}
cp -Rs {_FOLDER}/linked/. {_BOX_HOME}
cp -R {_FOLDER}/copied/. {_BOX_HOME}
"""

# What cannot be resolved here may be nothing that tests need; what they do need, their own tasks ask for.
_INIT_SCRIPT = b"""allprojects {
    tasks.withType(Test) { enabled = false }
    task evalpipeResolve {
        doLast {
            configurations.findAll { !it.hasProperty('canBeResolved') || it.canBeResolved }.each {
                try { it.resolve() } catch (Exception fault) { println "evalpipe: ${it.name}: ${fault.message}" }
            }
        }
    }
}
"""

_FETCH = f"""if [ -f gradlew ] && sh ./gradlew --version; then gradle="sh ./gradlew"; else gradle=gradle; fi
mirror=${{EVALPIPE_GRADLE_INIT:+--init-script $EVALPIPE_GRADLE_INIT}}
$gradle --no-daemon --continue --init-script {_INIT} $mirror evalpipeResolve test > /tmp/gradle.log 2>&1 || failed=1
tail -n 40 /tmp/gradle.log
# A module that does not compile costs the others nothing; what cannot be had fails the build.
if [ -n "${{failed:-}}" ] && grep -qE '{_UNAVAILABLE}|{_UNREADABLE}' /tmp/gradle.log; then exit 1; fi
if ! grep -qE '^BUILD |actionable tasks?' /tmp/gradle.log; then exit 1; fi"""

_FINISH = f"""cd {_BOX_HOME}
rm -rf daemon notifications .tmp
find . -name '*.lck' -delete
if [ -d caches/modules-2/files-2.1 ]; then
    find caches/modules-2/files-2.1 -name '*.jar' | awk -F / '{{print $4 ":" $5 "==" $6}}' | sort -u > {PACKAGES_FILE}
    mkdir -p {_FOLDER}/linked/caches/modules-2
    mv caches/modules-2/files-2.1 {_FOLDER}/linked/caches/modules-2
fi
mkdir -p {_FOLDER}/linked {_FOLDER}/bin
[ ! -d wrapper ] || mv wrapper {_FOLDER}/linked
for program in {_FOLDER}/linked/wrapper/dists/*/*/*/bin/gradle; do
    [ ! -f "$program" ] || ln -sf "$program" {_FOLDER}/bin/gradle
done
mkdir -p init.d
echo 'gradle.startParameter.offline = true' > init.d/offline.gradle
printf 'org.gradle.daemon=false\\norg.gradle.java.installations.auto-download=false\\n' >> gradle.properties
cd /
mv {_BOX_HOME} {_FOLDER}/copied
rm -rf /work/cache"""


class GradleTemplate:
    """See `Template`."""

    name = NAME

    def recipe(self, project: Project) -> Recipe:
        """The recipe of a tree with at least one build or settings file of Gradle. Raises NoRecipe."""
        seen = [path for path in project.tree.paths if not _FIXTURE.search(path)]
        builds = outermost({folder_of(path) for path in seen if _BUILD.search(path)})
        if not builds:
            raise NoRecipe(
                "template `gradle` found no build.gradle or settings.gradle; for a build by Maven there is "
                "`template: maven`"
            )
        fetch = "\n".join([trust_script("GRADLE_OPTS"), *(_in_folder(folder, _FETCH) for folder in builds)])
        altered = altered_files(project, _deciding(project.change)) if project.change else {}
        again = [fetching_again(fetch)] if altered else []
        return Recipe(
            NAME,
            VERSION,
            steps=(*project.setup, fetch, *again, _FINISH),
            env={"GRADLE_USER_HOME": _BOX_HOME, "PATH": f"{_FOLDER}/bin:$PATH"},
            files={PREPARE_SCRIPT: _PREPARE.encode(), _INIT: _INIT_SCRIPT, **trust_files(), **laid_files(altered)},
            decided_by=tuple(sorted(_deciding(project.tree))),
        )


def _deciding(tree: ProjectTree) -> set[bytes]:
    return {
        path
        for path in tree.paths
        if _BUILD_LOGIC.search(path) or (_DECIDING.search(path) and not _FIXTURE.search(path))
    }


def _in_folder(folder: bytes, script: str) -> str:
    return f"(\ncd {shlex.quote(os.fsdecode(posixpath.join(b'.', folder)))}\n{script}\n)"
