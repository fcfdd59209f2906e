"""Environments of Go, Rust and Node built with the real toolchains and registries, and tested in boxes by the runners.

Maven's are built for the hard cases of its runner.
"""

from __future__ import annotations

import datetime as dt
import textwrap
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from evalpipe.environments import Project, Template
from evalpipe.environments.templates.go import GoTemplate
from evalpipe.environments.templates.node import NodeTemplate
from evalpipe.environments.templates.rust import RustTemplate
from evalpipe.runners import RunStatus
from evalpipe.runners.cargo import CargoRunner
from evalpipe.runners.go import GoRunner
from evalpipe.runners.node import NodeRunner
from evalpipe.runners.plan import Runner
from evalpipe.runners.suite import SuiteRun, run_suite
from evalpipe.sandbox import REGULAR, DockerSandbox, FileEntry, Limits
from evalpipe_tests.conformance.environments import EnvironmentImages, TestEnvironment, Tree
from evalpipe_tests.environments.templates.memory_tree import MemoryChange

pytestmark = [pytest.mark.docker, pytest.mark.slow]

_LIMITS = Limits(timeout_s=300, memory_bytes=2 * 1024**3, cpus=2)
_DAY = dt.date(2024, 3, 1)


@pytest.fixture(scope="module")
def images(docker_sandbox: DockerSandbox, base_image: str) -> EnvironmentImages:
    return EnvironmentImages(docker_sandbox, base_image)


def _environment(
    toolchain: str, template: Template, files: Mapping[str, str], changed: Mapping[str, str] = MappingProxyType({})
) -> TestEnvironment:
    base = {path: textwrap.dedent(text) for path, text in files.items()}
    tree = Tree({path.encode(): text.encode() for path, text in base.items()})
    change = MemoryChange(base, changed) if changed else None
    return TestEnvironment(toolchain, template.recipe(Project(tree, _DAY, None, change=change)), tree)


def _run(
    sandbox: DockerSandbox, image: str, runner: Runner, environment: TestEnvironment, changed: Mapping[str, str]
) -> SuiteRun:
    content = {**environment.tree.content, **{path.encode(): text.encode() for path, text in changed.items()}}
    with sandbox.open(image, _LIMITS, {}) as box:
        return run_suite(box, runner, [FileEntry(path, REGULAR, data) for path, data in content.items()])


def _outcomes(run: SuiteRun) -> dict[str, str]:
    assert run.report.status is RunStatus.COMPLETED, (run.report, run.outcome.stderr[-2000:])
    assert run.report.canary_failed
    assert not run.report.uncollected
    return {test_id: str(result.outcome) for test_id, result in run.report.tests.items()}


def test_go_modules_in_two_folders_and_a_module_that_the_change_adds_run_offline(
    docker_sandbox: DockerSandbox, images: EnvironmentImages
) -> None:
    module = "module example.com/{}\n\ngo 1.21\n"
    test = """\
        package {}

        import (
            "os"
            "testing"
            {}
        )

        func TestIt(t *testing.T) {{
            {}
            if entries, err := os.ReadDir(os.Getenv("GOCACHE")); err != nil || len(entries) < 100 {{
                t.Fatal("the cache is empty", err)
            }}
        }}
    """
    files = {
        "api/go.mod": module.format("api") + "\nrequire github.com/google/uuid v1.6.0\n",
        "api/go.sum": "github.com/google/uuid v1.6.0 h1:NIvaJDMOsjHA8n1jAhLSgzrAzy1Hgr+hNrb57e+94F0=\n"
        "github.com/google/uuid v1.6.0/go.mod h1:TIyPZe4MgqvfeYDBFedMoGGpEw/LqOeaOT+nhxU+yHo=\n",
        "api/api_test.go": test.format("api", '"github.com/google/uuid"', "uuid.New()"),
        "the server/go.mod": module.format("server"),
        "the server/server_test.go": test.format("server", "", ""),
        "tools/go.mod": "module example.com/tools\n\ngo 1.99\n",
        "tools/main.go": "package main\n\nfunc main() {}\n",
    }
    changed = {
        "the server/go.mod": module.format("server") + "\nrequire github.com/pkg/errors v0.9.1\n",
        "the server/go.sum": "github.com/pkg/errors v0.9.1 h1:FEBLx1zS214owpjy7qsBeixbURkuhQAwrK5UwLGTwt4=\n"
        "github.com/pkg/errors v0.9.1/go.mod h1:bwawxfHBFNV+L2hUp1rHADufV3IMtnDRdf1r5NINEl0=\n",
        "the server/server_test.go": textwrap.dedent(
            test.format("server", '"github.com/pkg/errors"', 'errors.New("")')
        ),
    }
    environment = _environment("go", GoTemplate(), files, changed)
    # The module without tests, which wants a newer Go, is nobody's concern until the runner comes to it.
    run = _run(docker_sandbox, images.image(environment), GoRunner(), environment, changed)
    assert run.report.status is RunStatus.COMPLETED
    assert list(run.report.uncollected) == ["tools"]
    assert {test_id: str(result.outcome) for test_id, result in run.report.tests.items()} == {
        "example.com/api::TestIt": "passed",
        "example.com/server::TestIt": "passed",
    }


def test_a_go_that_is_too_old_is_named(images: EnvironmentImages) -> None:
    files = {"go.mod": "module example.com/new\n\ngo 1.99\n", "a_test.go": "package a\n"}
    with pytest.raises(pytest.fail.Exception, match=r"requires go >= 1\.99"):
        images.image(_environment("go", GoTemplate(), files))


def test_rust_crates_are_those_of_the_day_and_of_the_change_and_no_code_of_the_base_is_left(
    docker_sandbox: DockerSandbox, images: EnvironmentImages
) -> None:
    library = "pub fn answer() -> u32 {{ {} }}\n#[test]\nfn it_is() {{ assert_eq!(answer(), 42); {}; }}\n"
    files = {
        "Cargo.toml": """\
            [package]
            name = "shop"
            version = "0.1.0"
            edition = "2021"
            [dependencies]
            itoa = "1"
        """,
        "src/lib.rs": library.format("41", "itoa::Buffer::new().format(1)"),
    }
    locked = 'assert!(include_str!("../Cargo.lock").contains("version = \\"1.0.10\\""))'
    changed = {
        "Cargo.toml": textwrap.dedent(files["Cargo.toml"]) + 'ryu = "1"\n',
        "src/lib.rs": library.format("42", f"ryu::Buffer::new(); {locked}"),
    }
    environment = _environment("rust", RustTemplate(), files, changed)
    image = images.image(environment)
    before = _outcomes(_run(docker_sandbox, image, CargoRunner(), environment, {}))
    after = _outcomes(_run(docker_sandbox, image, CargoRunner(), environment, changed))
    assert list(before.values()) == ["failed"]
    assert list(after.values()) == ["passed"]


def test_node_packages_are_those_of_the_day_and_of_the_change_and_a_workspace_finds_its_own(
    docker_sandbox: DockerSandbox, images: EnvironmentImages
) -> None:
    files = {
        "package.json": '{"name": "shop", "version": "1.0.0", "workspaces": ["packages/*"], '
        '"dependencies": {"semver": "^7.0.0"}}',
        "packages/core/package.json": '{"name": "@shop/core", "version": "1.0.0", "main": "index.js"}',
        "packages/core/index.js": "module.exports = require('semver/package.json').version\n",
        "test/it.test.js": """\
            const test = require("node:test");
            const assert = require("node:assert");
            const fs = require("node:fs");
            test("released by the day", () => assert.equal(require("@shop/core"), "7.6.0"));
            test("own code is the tree's", () =>
                assert.equal(require.resolve("@shop/core"), "/work/repo/packages/core/index.js"));
            test("tools can cache", () => fs.mkdirSync("node_modules/.cache/tool", { recursive: true }));
        """,
    }
    changed = {
        "package.json": files["package.json"].replace('"semver": "^7.0.0"', '"semver": "^7.0.0", "ms": "^2.0.0"'),
        "test/added.test.js": 'require("node:test")("added", () => require("assert")(require("ms")("1s") === 1000));\n',
    }
    environment = _environment("node", NodeTemplate(), files, changed)
    outcomes = _outcomes(_run(docker_sandbox, images.image(environment), NodeRunner(), environment, changed))
    assert set(outcomes.values()) == {"passed"}
    assert len(outcomes) == 4
