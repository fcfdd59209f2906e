import datetime as dt

import pytest

from evalpipe.environments.recipe import NoRecipe, Project, Recipe
from evalpipe.environments.templates.maven import MavenTemplate
from evalpipe.environments.templates.maven_poms import maven_projects
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

_POM = '<?xml version="1.0"?>\n<project xmlns="http://maven.apache.org/POM/4.0.0">{}</project>'
_CHILD = _POM.format(
    "<parent><groupId>org.shop</groupId><artifactId>parent</artifactId><version>1.1-SNAPSHOT</version>{}</parent>{}"
)


def _recipe(files: dict[str, str]) -> Recipe:
    return MavenTemplate().recipe(Project(MemoryTree(files), dt.date(2024, 5, 1), None))


def _reactor() -> dict[str, str]:
    top = (
        "<groupId>org.shop</groupId><artifactId>parent</artifactId><version>1.1-SNAPSHOT</version><modules><module>core</module></modules>"
        "<profiles><profile><modules><module>extra/pom-jdk17.xml</module></modules></profile></profiles>"
    )
    return {
        "pom.xml": _POM.format(top),
        "core/pom.xml": _CHILD.format(
            "<relativePath>../build</relativePath>", "<artifactId> shop-core </artifactId><version>1.0</version>"
        ),
        "build/pom.xml": _POM.format(
            "<groupId>org.shop.build</groupId><artifactId>settings</artifactId><version>3</version>"
        ),
        "extra/pom-jdk17.xml": _CHILD.format("", "<artifactId>extra</artifactId>"),
        "core/src/it/simple/pom.xml": _POM.format("<groupId>it</groupId><artifactId>simple</artifactId>"),
        ".mvn/jvm.config": "",
        ".mvn/wrapper/maven-wrapper.properties": "",
    }


def test_modules_profiles_and_parents_decide_and_fixtures_do_not() -> None:
    assert _recipe(_reactor()).decided_by == (
        b".mvn/jvm.config",
        b"build/pom.xml",
        b"core/pom.xml",
        b"extra/pom-jdk17.xml",
        b"pom.xml",
    )


def test_nothing_of_the_project_itself_stays_in_the_repository() -> None:
    (project,) = maven_projects(MemoryTree(_reactor()))
    assert project.own == {
        "org.shop.build:settings": "3",
        "org.shop:extra": "1.1-SNAPSHOT",
        "org.shop:parent": "1.1-SNAPSHOT",
        "org.shop:shop-core": "1.0",
    }
    assert "/repository/org/shop/shop-core/1.0\n" in _recipe(_reactor()).steps[-1]


def test_names_with_a_meaning_for_the_shell_are_quoted() -> None:
    pom = _POM.format("<groupId>a</groupId><artifactId>${x}; touch /tmp/y</artifactId>")
    assert "'a/${x}; touch /tmp/y/0'" in _recipe({"pom.xml": pom}).steps[-1]


def test_where_the_top_has_no_pom_each_outermost_one_is_built() -> None:
    pom = _POM.format("<groupId>a</groupId><artifactId>b</artifactId>")
    recipe = _recipe({"java/pom.xml": pom, "tools/pom.xml": pom, "java/x/pom.xml": pom})
    assert recipe.steps[0].count("mvn -B") == 2
    assert recipe.decided_by == (b"java/pom.xml", b"tools/pom.xml")


@pytest.mark.parametrize(
    "files",
    [
        {"build.gradle": ""},
        {"pom.xml": "<project>"},
        {"pom.xml": '<!DOCTYPE project [<!ENTITY a "aaaa">]><project>&a;</project>'},
    ],
)
def test_no_recipe_without_poms_that_can_be_read(files: dict[str, str]) -> None:
    with pytest.raises(NoRecipe, match=r"pom\.xml"):
        _recipe(files)
