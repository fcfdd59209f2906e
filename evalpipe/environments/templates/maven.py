"""Template `maven`: a local repository with all that `mvn test` wants, plugins and their providers among it.

It is filled by the very command that tests use, because no other knows all that it asks for: Surefire, for one,
chooses its provider when the tests begin. The Java of the tests is told to print its version and end, so none runs.
The versions that the project itself makes do not stay in the repository: they must come from the tree under test.
"""

import os
import posixpath
import shlex

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, NoRecipe, Project, Recipe
from evalpipe.environments.templates.additions import altered_files, fetching_again, laid_files
from evalpipe.environments.templates.java_trust import trust_files, trust_script
from evalpipe.environments.templates.maven_poms import MavenProject, maven_projects
from evalpipe.environments.templates.released_copies import newer_copies_script
from evalpipe.runners.preparation import PREPARE_SCRIPT

NAME = "maven"
VERSION = 1
_REPOSITORY = f"{BUILD_FOLDER}/maven/repository"

# Checks of form, licences and the like are no tests, and would fail a change, or the whole build, for another reason.
# What asks git finds no repository.
_SKIPPED = (
    "animal.sniffer.skip",
    "checkstyle.skip",
    "cpd.skip",
    "enforcer.skip",
    "formatter.skip",
    "impsort.skip",
    "license.skip",
    "maven.gitcommitid.skip",
    "pmd.skip",
    "rat.skip",
    "spotbugs.skip",
    "spotless.check.skip",
)
_OPTIONS = " ".join(["-Duser.home=/tmp", *(f"-D{name}=true" for name in _SKIPPED)])
_UNAVAILABLE = "(Could not (transfer|find|resolve)|Non-resolvable|could not be resolved|cannot be resolved)"

_PREPARE = f"""#!/bin/sh
mkdir -p /tmp/.m2
cat > /tmp/.m2/settings.xml << 'END'
<settings><localRepository>{_REPOSITORY}</localRepository><offline>true</offline></settings>
END
"""

_BEGIN = f"""export MAVEN_OPTS="$MAVEN_OPTS -Duser.home=$HOME"
{trust_script("MAVEN_OPTS")}
mvn --version"""

# What cannot be had fails the build, and so does a build that comes to no tests; a module that does not compile costs
# the others nothing.
_FILL = f"""mvn -B -ntp -fn -Dstyle.color=never -Dmaven.repo.local={_REPOSITORY} -Dmaven.surefire.debug=-version \\
    -Dmaven.test.failure.ignore=true test > /tmp/maven.log 2>&1 || true
grep -E '^\\[(ERROR|WARNING)\\]| (SUCCESS|FAILURE|SKIPPED)' /tmp/maven.log | tail -n 30
if grep -qE '^\\[(ERROR|FATAL)\\].*{_UNAVAILABLE}' /tmp/maven.log; then exit 1; fi"""
_FETCH = f"""{_FILL}
grep -qE '^\\[INFO\\] --- [a-z-]*surefire[a-z-]*:[^ ]+:test ' /tmp/maven.log || exit 1"""

_FINISH = f"""cd {_REPOSITORY}
find . -name '*.jar' | awk -F / '{{
    group = $2
    for (n = 3; n <= NF - 3; n++) group = group "." $n
    print group ":" $(NF - 2) "==" $(NF - 1)
}}' | sort -u > {PACKAGES_FILE}
# They say which server a file came from, and Maven refuses what came from one that it does not know any more.
find . \\( -name _remote.repositories -o -name '*.lastUpdated' -o -name resolver-status.properties \\) -delete"""


class MavenTemplate:
    """See `Template`."""

    name = NAME

    def recipe(self, project: Project) -> Recipe:
        """The recipe of a tree with at least one pom.xml. Raises NoRecipe."""
        projects = maven_projects(project.tree)
        if not projects:
            raise NoRecipe("template `maven` found no pom.xml; for a build by Gradle there is `template: gradle`")
        fetch = [_BEGIN, *(_in_folder(one, _FETCH) for one in projects)]
        altered, again = _again(project)
        own = {name: version for one in projects for name, version in one.own.items()}
        remove = [f"rm -rf {_REPOSITORY}/{shlex.quote(_place(*item))}" for item in sorted(own.items())]
        return Recipe(
            NAME,
            VERSION,
            steps=(*project.setup, "\n".join(fetch), *again, "\n".join([*remove, _FINISH])),
            env={"MAVEN_OPTS": _OPTIONS},
            files={PREPARE_SCRIPT: _PREPARE.encode(), **trust_files(), **laid_files(altered)},
            check=newer_copies_script(own, project.version),
            decided_by=tuple(sorted({path for one in projects for path in one.deciding})),
        )


def _again(project: Project) -> tuple[dict[bytes, bytes], list[str]]:
    """The poms that a change alters, and the step that fetches what they ask for."""
    if project.change is None:
        return {}, []
    projects = maven_projects(project.change)
    altered = altered_files(project, [path for one in projects for path in one.deciding])
    # The base's sources need not compile by the change's poms, so here nobody asks whether the tests were reached.
    script = "\n".join([_BEGIN, *(_in_folder(one, _FILL) for one in projects)])
    return altered, [fetching_again(script)] if altered else []


def _in_folder(project: MavenProject, script: str) -> str:
    return f"(\ncd {shlex.quote(os.fsdecode(posixpath.join(b'.', project.folder)))}\n{script}\n)"


def _place(name: str, version: str) -> str:
    """Where a local repository has one version of what is called `group:artifact`."""
    group, _, artifact = name.partition(":")
    return posixpath.join(*group.split("."), artifact, version)
