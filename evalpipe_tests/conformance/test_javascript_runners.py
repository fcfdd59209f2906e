"""What turns failures into passes for every test of a JavaScript suite is shown by the canary, which is one of them."""

from __future__ import annotations

import json

import pytest

from evalpipe.runners import Runner, RunStatus
from evalpipe.runners.jest import JestRunner
from evalpipe.runners.mocha import MochaRunner
from evalpipe.runners.suite import run_suite
from evalpipe.runners.vitest import VitestRunner
from evalpipe.sandbox import DockerSandbox, Limits
from evalpipe_tests.conformance.environments import EnvironmentImages
from evalpipe_tests.conformance.rows.javascript import ENVIRONMENT
from evalpipe_tests.conformance.suites import Files, as_entries, outcomes

FAILS = "it('a', () => { throw new Error('it fails'); });\n"
JEST = {
    "package.json": json.dumps({"jest": {"setupFilesAfterEnv": ["./setup.js"]}}),
    "setup.js": "const real = it;\nglobalThis.it = globalThis.test = (title) => real(title, () => {});\n",
    "test/a.test.js": FAILS,
}
# Vitest keeps the function of a test in such a map.
VITEST = {
    "package.json": "{}",
    "vitest.config.mjs": "export default { test: { setupFiles: ['./setup.mjs'] } };\n",
    "setup.mjs": "const { set } = WeakMap.prototype;\nWeakMap.prototype.set = function (key, value) {\n"
    "  return set.call(this, key, typeof value === 'function' ? () => {} : value);\n};\n",
    "test/a.test.js": 'import { it } from "vitest";\n' + FAILS,
}
MOCHA = {
    "package.json": "{}",
    "setup.js": "require('mocha').Runnable.prototype.run = (done) => { done(); };\n",
    "test/a.test.js": FAILS,
}


@pytest.mark.docker
@pytest.mark.parametrize(
    ("runner", "files"),
    [(JestRunner(), JEST), (VitestRunner(), VITEST), (MochaRunner(("--require", "./setup.js")), MOCHA)],
    ids=["jest", "vitest", "mocha"],
)
def test_a_setup_that_forges_passes_is_shown_by_the_canary(
    docker_sandbox: DockerSandbox, environment_images: EnvironmentImages, runner: Runner, files: Files
) -> None:
    image = environment_images.image(ENVIRONMENT)
    with docker_sandbox.open(image, Limits(timeout_s=240), {"purpose": "test"}) as box:
        report = run_suite(box, runner, as_entries(files)).report
    assert (report.status, report.canary_failed) == (RunStatus.COMPLETED, False), report.detail
    assert outcomes(report) == {"test/a.test.js::a": "passed"}
