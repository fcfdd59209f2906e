from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.paths import (
    FileKind,
    PathRules,
    default_kind,
    fragment_number,
    is_changelog,
    steers_tests,
)

KINDS = {
    FileKind.test: """
        tests/test_x.py test/x.py src/pkg/tests/helpers.py test_x.py pkg/x_test.py pkg/tests.py conftest.py
        src/conftest.py testing/benchmark.py tests/data/page.md tests/fixtures/a.json tests/requirements.txt
        pkg/x_test.go pkg/testdata/golden.txt
        tests/it.rs src/parser/tests.rs src/parser_test.rs crates/a/tests/b/mod.rs
        src/x.test.ts src/x.spec.tsx src/x.test.mjs src/__tests__/x.js src/__snapshots__/x.snap spec/x.js
        cypress/e2e/x.cy.ts lib/x-test.js test/mocha.opts test.js packages/a/tests.ts src/__fixtures__/a.ts
        src/test/java/a/XTest.java a/XTests.java a/TestX.java a/XIT.java src/androidTest/x.xml
        src/commonTest/kotlin/X.kt a/XSpec.kt src/testFixtures/java/X.java
        Clock.Tests/ClockTests.cs Clock.UnitTests/Helper.cs tests/Clock.cs Clock.Test/a.txt
        spec/x_spec.rb spec/spec_helper.rb test/x_test.rb features/x.feature
        tests/XTest.php src/XTest.php Zend/tests/x.phpt
        test_x.c x_test.cc x_unittest.cpp ClockTest.cpp tests/x.h test-x.c x-test.cpp x.test.cpp
        tests/fixtures/vendor/x.js tests/x_pb2.py test/node_modules/x/index.js tests/dist/x.js fixtures/x.json
        src/snapshots/x__tests__y.snap tests/__snapshots__/x.ambr X.Wound.approved.txt X.Wound.verified.json
        src/x.test-d.ts spec/fixtures/x.yml spec/support/x.json features/step_definitions/x.rb features/support/env.rb
        unit_tests/x.py pkg/functional-tests/x.py pkg/smoke_tests/x.py testsuite/x.c test_utils/x.py test_helpers/x.rb
        src/it/simple/src/main/java/X.java integration-tests/src/main/java/X.java ClockTests/Helper.cs
        mocks/clock.go pkg/mock_clock.go pkg/clock_mock.go
    """,
    FileKind.source: """
        src/main/javacc/JsonParser.jj src/Tree.jjt
        src/latest.py src/contest.py contest/main.py pkg/protest/attest.py src/pkg/testing.py pkg/testing/tools.py
        fastest.go greatest.rs src/latest.ts Latest.java Contest.kt Fastest.cs src/testify.py
        src/inspector.js src/special/x.rb specification/x.py spec/x.py Attestation.cs
        src/main/java/a/XTests.java src/main/java/com/test/X.java src/main/java/org/example/docs/X.java
        src/main/kotlin/TestClock.kt src/commonMain/kotlin/a/vendor/X.kt src/main/java/a/benchmark/X.java
        it/x.py src/features/x.rb src/fixtures/x.py pkg/test_utils/x.py pkg/hypothesis_tests/x.py cmd/dist/build.go
        mocks/x.py src/Contests/X.cs
        pkg/x.pyi lib/x.pyx cmd/main.go src/lib.rs src/App.vue a/X.java a/X.kt A/X.cs lib/x.rb src/X.php
        src/x.c include/x.hpp tests_runner/x.py my.py blake2b/sum_amd64.s lib/sinatra/test_helpers.rb
    """,
    FileKind.docs: """
        docs/testing.md docs/conf.py README README.md tests/README.md CHANGELOG.md CHANGES NEWS.rst HISTORY.txt
        changelog/12.bugfix.rst newsfragments/12.feature docs/_static/x.css examples/x.py doc/tests/x.py
        LICENSE CONTRIBUTING.md guide.adoc src/main/java/a/examples/X.java
    """,
    FileKind.dependency: """
        pyproject.toml setup.py setup.cfg requirements.txt requirements-dev.txt dev-requirements.in
        requirements/tests.txt constraints.txt Pipfile Pipfile.lock poetry.lock uv.lock
        package.json web/package-lock.json yarn.lock pnpm-lock.yaml go.mod go.sum Cargo.toml Cargo.lock pom.xml
        build.gradle app/build.gradle.kts gradle/libs.versions.toml Clock/Clock.csproj packages.lock.json
        Gemfile Gemfile.lock clock.gemspec composer.json composer.lock conanfile.txt vcpkg.json
    """,
    FileKind.generated: """
        vendor/x/y.go third_party/x_test.go node_modules/x/test/y.js src/_vendor/x.py dist.min.js x_pb2.py x.pb.go
        dist/x.js packages/a/dist/x.mjs node_modules/x/tests/y.js vendor/x/src/main/java/X.java
        X.Designer.cs x.g.cs x.generated.ts zz_generated.deepcopy.go
    """,
    FileKind.other: """
        .github/workflows/tests.yml .gitignore Makefile tox.ini pytest.ini data/x.json scripts/release.py noxfile.py
        Dockerfile tools/x.py .ci/run.py x.png benchmarks/x.py clap_bench/benches/x.rs packages/bench/x.ts
        fuzz/fuzz_targets/x.rs src/x.bench.ts src/x.stories.tsx src/jmh/java/X.java metrics/ParseBenchmark.java
        order.approved.html
    """,
}


@pytest.mark.parametrize(("path", "kind"), [(path, kind) for kind, paths in KINDS.items() for path in paths.split()])
def test_default_kind(path: str, kind: FileKind) -> None:
    assert default_kind(path.encode()) is kind


def test_path_need_not_be_utf8() -> None:
    assert default_kind(b"tests/\xff\xfe.py") is FileKind.test
    assert default_kind(b"src/\xff\n \t.py") is FileKind.source
    assert default_kind(b"src/my file.py") is FileKind.source


def test_globs_go_before_the_default_rules() -> None:
    rules = PathRules(
        test_globs=("checks/**", "*_check.py", "src/[x].py"),
        source_globs=("scripts/**/*.py", "docs/plugin.py"),
        generated_globs=("checks/big/**",),
    )
    assert rules.kind_of(b"checks/a/b.py") is FileKind.test
    assert rules.kind_of(b"checks/big/b.py") is FileKind.generated
    assert rules.kind_of(b"deep/down/clock_check.py") is FileKind.test
    assert rules.kind_of(b"scripts/a.py") is FileKind.source
    assert rules.kind_of(b"scripts/a/b/c.py") is FileKind.source
    assert rules.kind_of(b"scripts/a.sh") is FileKind.other
    assert rules.kind_of(b"docs/plugin.py") is FileKind.source
    assert rules.kind_of(b"docs/other.py") is FileKind.docs
    assert rules.kind_of(b"src/x.py") is FileKind.source
    assert rules.kind_of(b"src/[x].py") is FileKind.test


def test_star_stays_inside_a_component() -> None:
    rules = PathRules(test_globs=("a/*/x?.py",))
    assert rules.kind_of(b"a/b/x1.py") is FileKind.test
    assert rules.kind_of(b"a/b/c/x1.py") is FileKind.source
    assert rules.kind_of(b"a/b/x.py") is FileKind.source


def test_glob_with_non_ascii_letters() -> None:
    assert PathRules(test_globs=("prüfung/**",)).kind_of("prüfung/x.py".encode()) is FileKind.test


@pytest.mark.parametrize("glob", ["", "/"])
def test_empty_glob_is_refused(glob: str) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        PathRules(test_globs=(glob,)).kind_of(b"x")


STEERING = """
    conftest.py a/b/conftest.py pytest.ini .pytest.ini tox.ini setup.cfg pyproject.toml setup.py noxfile.py
    sitecustomize.py usercustomize.py a.pth lib/x.pth pytest.py x.dist-info/entry_points.txt x.egg-info/PKG-INFO
    jest.config.js jest.config.ts vitest.config.mts vite.config.ts .mocharc.yml test/mocha.opts package.json
    karma.conf.js babel.config.js tsconfig.json web/tsconfig.test.json playwright.config.ts
    pom.xml build.gradle.kts .mvn/jvm.config junit-platform.properties a.runsettings .rspec spec/spec_helper.rb
    phpunit.xml phpunit.xml.dist Makefile Cargo.toml .cargo/config.toml build.rs CMakeLists.txt .coveragerc
    go.mod go.work node_modules/chai/index.js web/node_modules/x.js lib/site-packages/pytest_easy.py vendor/modules.txt
    vendor/github.com/stretchr/testify/assert/assertions.go
    go.sum go.work.sum Cargo.lock rust-toolchain.toml rust-toolchain package-lock.json web/yarn.lock pnpm-workspace.yaml
    .pnp.cjs .yarn/plugins/x.cjs .yarnrc.yml vitest.projects.ts jest-preset.js jsconfig.json .env .env.test
    gradle/tests.gradle init.gradle.kts gradle/libs.versions.toml buildSrc/src/main/java/A.java build-logic/a.kt
    src/main/resources/META-INF/services/org.junit.platform.launcher.TestExecutionListener
    META-INF/services/org.testng.ITestNGListener
"""
NOT_STEERING = """
    src/x.py tests/test_x.py src/pytest_helper.py jest.md README.md x.path vendor/models.py src/vendor/a.go
    src/gradle.py src/main/resources/META-INF/services/com.example.Shop src/env.py
"""


@pytest.mark.parametrize("path", STEERING.split())
def test_files_that_steer_a_test_run(path: str) -> None:
    assert steers_tests(path.encode())


@pytest.mark.parametrize("path", NOT_STEERING.split())
def test_files_that_do_not(path: str) -> None:
    assert not steers_tests(path.encode())


def test_changelogs_and_their_fragments() -> None:
    assert is_changelog(b"docs/changes/index.rst")
    assert is_changelog(b"CHANGELOG")
    assert not is_changelog(b"src/changes.py")
    assert not is_changelog(b"changelog/check.py")
    assert fragment_number(b"changelog/123.bugfix.rst") == 123
    assert fragment_number(b"a/newsfragments/gh-7.misc") == 7
    assert fragment_number(b"changelog/README.rst") is None
    assert fragment_number(b"src/123.py") is None


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=4).map(b"/".join))
def test_every_path_has_a_kind(path: bytes) -> None:
    assert default_kind(path) in FileKind
    steers_tests(path)


@given(st.text(st.characters(categories=["Ll"]), min_size=1, max_size=10))
def test_no_word_that_merely_contains_test_makes_a_test(word: str) -> None:
    name = f"{word}test".encode()
    assert default_kind(b"src/" + name + b".py") is FileKind.source
    assert default_kind(name + b"ing/x.py") is FileKind.source
