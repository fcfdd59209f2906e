import datetime as dt
import subprocess
from pathlib import Path

import pytest

from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, NoRecipe, Project, Recipe
from evalpipe.environments.templates.gradle import GradleTemplate
from evalpipe.runners.preparation import PREPARE_SCRIPT
from evalpipe_tests.environments.templates.memory_tree import MemoryTree


def _recipe(files: dict[str, str]) -> Recipe:
    return GradleTemplate().recipe(Project(MemoryTree(files), dt.date(2024, 5, 1), None))


def test_scripts_catalogs_locks_and_build_logic_decide_and_fixtures_do_not() -> None:
    deciding = [
        "build.gradle",
        "buildSrc/src/main/groovy/Convention.groovy",
        "core/build.gradle.kts",
        "core/gradle.lockfile",
        "gradle.properties",
        "gradle/dependency-locks/compile.lockfile",
        "gradle/libs.versions.toml",
        "gradle/publish.gradle",
        "gradle/verification-metadata.xml",
        "gradle/wrapper/gradle-wrapper.properties",
        "settings.gradle.kts",
    ]
    others = ["core/src/test/resources/sample/build.gradle", "gradle/wrapper/gradle-wrapper.jar", "src/A.java"]
    assert _recipe(dict.fromkeys([*others, *deciding], "")).decided_by == tuple(path.encode() for path in deciding)


def test_where_the_top_has_no_build_each_outermost_one_is_run() -> None:
    steps = _recipe({"a b/build.gradle": "", "c/settings.gradle": "", "c/d/build.gradle": ""}).steps
    assert "cd './a b'\n" in steps[0]
    assert "cd ./c\n" in steps[0]
    assert "c/d" not in steps[0]


def test_no_recipe_without_a_build() -> None:
    with pytest.raises(NoRecipe, match=r"build\.gradle"):
        _recipe({"pom.xml": "", "src/test/build.gradle": ""})


@pytest.mark.parametrize(
    ("log", "status", "exit_code"),
    [
        ("BUILD SUCCESSFUL in 3s", 0, 0),
        ("Execution failed for task ':a:compileJava'.\nBUILD FAILED in 3s", 1, 0),
        ("> Could not GET 'https://m/a.pom'. Received status code 401 from server\nBUILD FAILED in 3s", 1, 1),
        ("A problem occurred evaluating root project 'a'.\n> unknown property\nBUILD FAILED in 3s", 1, 1),
        ("A problem occurred configuring project ':a'.\nBUILD FAILED in 3s", 1, 1),
        ("> Could not compile build file '/work/repo/build.gradle'.\nBUILD FAILED in 3s", 1, 1),
        ("gradle: not found", 127, 1),
    ],
)
def test_a_build_that_gradle_cannot_read_fails_and_one_that_does_not_compile_does_not(
    tmp_path: Path, log: str, status: int, exit_code: int
) -> None:
    gradle = tmp_path / "gradle"
    gradle.write_text(f"#!/bin/sh\ncat <<'END'\n{log}\nEND\nexit {status}\n")
    gradle.chmod(0o755)
    script = _recipe({"build.gradle": ""}).steps[0].replace("/tmp/gradle.log", str(tmp_path / "log"))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-ec", script], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == exit_code, done


def test_a_box_gets_links_to_artifacts_and_to_gradle_and_copies_of_the_rest(tmp_path: Path) -> None:
    recipe = _recipe({"build.gradle": ""})
    moved = {BUILD_FOLDER: str(tmp_path / "opt"), "/work/cache": str(tmp_path / "cache")}

    def run(script: str) -> None:
        for old, new in moved.items():
            script = script.replace(old, new)
        subprocess.run(["/bin/sh", "-ec", script], check=True, cwd=tmp_path)

    home = tmp_path / "cache" / "gradle"
    jar = "caches/modules-2/files-2.1/org.shop/core/1.0/abc/core-1.0.jar"
    gradle = "wrapper/dists/gradle-8.5-bin/x1/gradle-8.5/bin/gradle"
    for name in (
        jar,
        gradle,
        "wrapper/dists/gradle-8.5-bin/x1/gradle-8.5-bin.zip.lck",
        "caches/8.5/f",
        "daemon/8.5/log",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    (tmp_path / "opt").mkdir()
    run(recipe.steps[-1])
    assert not (tmp_path / "cache").exists()
    assert Path(PACKAGES_FILE.replace(BUILD_FOLDER, moved[BUILD_FOLDER])).read_text() == "org.shop:core==1.0\n"
    run(recipe.files[PREPARE_SCRIPT].decode())
    assert (home / jar).is_symlink()
    assert (home / gradle).read_text() == gradle
    assert (tmp_path / "opt" / "gradle" / "bin" / "gradle").read_text() == gradle
    copied = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    assert copied == ["caches/8.5/f", "gradle.properties", "init.d/offline.gradle"]
