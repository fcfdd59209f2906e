from __future__ import annotations

import pytest

from evalpipe.history.dependencies import dependencies_changed, holds_more_than_dependencies

PYPROJECT = b'[project]\nname = "x"\ndependencies = ["a>=1"]\n[tool.ruff]\nline-length = 100\n'
POM = (
    b"<project>\n<version>1</version>\n<dependencies>\n<dependency><version>1</version></dependency>\n"
    b"</dependencies>\n<build><sourceDirectory>a</sourceDirectory></build></project>\n"
)
GEMSPEC = b's.summary = "x"\ns.add_dependency "rack", "~> 2"\n'
GRADLE = b'description = "x"\ndependencies {\n  implementation "a:b:1"\n}\nplugins { id "x" version "1" }\n'
PROJECT = b'<Project><Description>x</Description>\n<PackageReference Include="a" Version="1" />\n</Project>\n'
PACKAGE = b'{"name": "x", "version": "1", "dependencies": {"a": "1"}}'


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        (b"pyproject.toml", PYPROJECT, PYPROJECT.replace(b"a>=1", b"a>=2"), True),
        (b"pyproject.toml", PYPROJECT, PYPROJECT.replace(b"100", b"110"), False),
        (b"sub/pyproject.toml", PYPROJECT, PYPROJECT + b'[dependency-groups]\ntest = ["b"]\n', True),
        (b"pyproject.toml", PYPROJECT, b"broken = [", True),
        (b"pyproject.toml", b"", PYPROJECT, True),
        (b"pyproject.toml", PYPROJECT, b"\xff", True),
        (b"Cargo.toml", b'[dependencies]\na = "1"\n', b'[dependencies]\na = "2"\n', True),
        (b"Cargo.toml", b'[package]\nversion = "1"\n', b'[package]\nversion = "2"\n', False),
        (b"package.json", PACKAGE, PACKAGE.replace(b'"version": "1"', b'"version": "2"'), False),
        (b"package.json", PACKAGE, PACKAGE.replace(b'"a": "1"', b'"a": "2"'), True),
        (b"package.json", PACKAGE, b"[]", True),
        (b"setup.py", b"install_requires=['a']\n", b"install_requires=['b']\n", True),
        (b"setup.py", b"    'a>=1',\n", b"    'a>=2',\n", True),
        (b"setup.cfg", b"license = MIT\n", b"license = BSD\n", False),
        (b"requirements.txt", b"a\n", b"b\n", True),
        (b"go.mod", b"", b"module x\n", True),
        (b"pom.xml", POM, POM.replace(b"<project>\n<version>1", b"<project>\n<version>2"), False),
        (b"core/pom.xml", POM, POM.replace(b"Directory>a", b"Directory>b"), False),
        (b"pom.xml", POM, POM.replace(b"<dependency><version>1", b"<dependency><version>2"), True),
        (b"pom.xml", POM, POM.replace(b"\n<dependency>", b"\n\n  <dependency>"), False),
        (b"pom.xml", b"", POM, True),
        (b"x.gemspec", GEMSPEC, GEMSPEC.replace(b'"x"', b'"y"'), False),
        (b"x.gemspec", GEMSPEC, GEMSPEC.replace(b"~> 2", b"~> 3"), True),
        (b"build.gradle", GRADLE, GRADLE.replace(b'"x"\n', b'"y"\n'), False),
        (b"app/build.gradle.kts", GRADLE, GRADLE.replace(b"a:b:1", b"a:b:2"), True),
        (b"build.gradle", GRADLE, GRADLE.replace(b'version "1"', b'version "2"'), True),
        (b"a/A.csproj", PROJECT, PROJECT.replace(b">x<", b">y<"), False),
        (b"a/A.csproj", PROJECT, PROJECT.replace(b'"1"', b'"2"'), True),
    ],
)
def test_whether_a_manifest_changed_a_dependency(path: bytes, old: bytes, new: bytes, changed: bool) -> None:
    assert dependencies_changed(path, old, new) is changed


@pytest.mark.parametrize(
    ("path", "more"),
    [
        *(
            (path, True)
            for path in (b"a/pom.xml", b"setup.cfg", b"Cargo.toml", b"package.json", b"X.gemspec", b"A.csproj")
        ),
        *((path, False) for path in (b"go.mod", b"requirements.txt", b"package-lock.json", b"Gemfile", b"uv.lock")),
    ],
)
def test_content_is_asked_for_only_where_it_tells(path: bytes, more: bool) -> None:
    assert holds_more_than_dependencies(path) is more
    assert more or dependencies_changed(path, b"a", b"b")
