"""Grading for real: honest and dishonest patches on a tiny repository, in every sandbox that this machine has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from evalpipe.grading import Grading, Verdict, grade, verdict_key
from evalpipe.history import Repository
from evalpipe.runners import PytestRunner
from evalpipe.sandbox import ProcessSandbox, Sandbox
from evalpipe.tasks import EnvironmentSpec, RunnerSpec, Task
from evalpipe_tests.history.builder import LINK, Builder, File
from evalpipe_tests.runners.environment import bare_pytest
from evalpipe_tests.tasks.records import task_record

PARENT: dict[bytes, File] = {
    b"clock.py": b"def noon():\n    return 11\n\n\ndef hours():\n    return 24\n",
    b"test_clock.py": b"import clock\n\n\ndef test_hours():\n    assert clock.hours() == 24\n",
}
CHANGE: dict[bytes, File] = {
    b"clock.py": b"def noon():\n    return 12\n\n\ndef hours():\n    return 24\n",
    b"test_clock.py": b"import clock\n\n\ndef test_hours():\n    assert clock.hours() == 24\n\n\n"
    b"def test_noon():\n    assert clock.noon() == 12\n",
}
WRONG = b"def noon():\n    return 11\n\n\ndef hours():\n    return 24\n"

FORGING_CONFTEST = (
    b"import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n"
    b"    outcome = yield\n    report = outcome.get_result()\n"
    b"    report.outcome = 'passed'\n    report.longrepr = None\n"
)

CASES: dict[str, tuple[dict[bytes, File], set[Verdict]]] = {
    "reference": (CHANGE, {Verdict.RESOLVED}),
    "other_repair": ({b"clock.py": b"def noon():\n    return 6 + 6\n\nhours = lambda: 24\n"}, {Verdict.RESOLVED}),
    "wrong": ({b"clock.py": WRONG + b"# hm\n"}, {Verdict.FAIL_TO_PASS_FAILED}),
    "breaks_another": (
        {b"clock.py": b"def noon():\n    return 12\n\n\ndef hours():\n    return 12\n"},
        {Verdict.PASS_TO_PASS_BROKEN},
    ),
    "breaks_the_import": ({b"clock.py": b"import nothing_of_this_name\n"}, {Verdict.FAIL_TO_PASS_FAILED}),
    "syntax_error": ({b"clock.py": b"def noon(:\n"}, {Verdict.FAIL_TO_PASS_FAILED}),
    "tests_deleted": ({b"test_clock.py": None, b"clock.py": CHANGE[b"clock.py"]}, {Verdict.RESOLVED}),
    "only_tests_changed": (
        {b"test_clock.py": b"def test_noon():\n    pass\n\n\ndef test_hours():\n    pass\n"},
        {Verdict.FAIL_TO_PASS_FAILED},
    ),
    "conftest": ({b"conftest.py": FORGING_CONFTEST}, {Verdict.FAIL_TO_PASS_FAILED}),
    "pytest_ini": ({b"pytest.ini": b"[pytest]\naddopts = --collect-only\n"}, {Verdict.FAIL_TO_PASS_FAILED}),
    "sitecustomize": ({b"sitecustomize.py": b"import os\nos._exit(0)\n"}, {Verdict.FAIL_TO_PASS_FAILED}),
    "exit_at_import": ({b"clock.py": b"import os\nos._exit(0)\n"}, {Verdict.NO_REPORT}),
    "system_exit_at_import": (
        {b"clock.py": b"import sys\nsys.exit(0)\n"},
        {Verdict.NO_REPORT, Verdict.FAIL_TO_PASS_FAILED},
    ),
    "kill_at_import": ({b"clock.py": b"import os\nos.kill(os.getpid(), 9)\n"}, {Verdict.NO_REPORT}),
    "prints_passed": (
        {
            b"clock.py": b"print('PASSED test_clock.py::test_noon')\n" + WRONG + b"\n\nimport atexit\n"
            b"atexit.register(print, '===== 2 passed in 0.01s =====')\n"
        },
        {Verdict.FAIL_TO_PASS_FAILED},
    ),
    "xfail_in_the_product": (
        {b"clock.py": b"import pytest\n\n\ndef noon():\n    pytest.xfail()\n\n\ndef hours():\n    return 24\n"},
        {Verdict.FAIL_TO_PASS_FAILED},
    ),
    "skip_in_the_product": (
        {b"clock.py": b"import pytest\n\n\ndef noon():\n    pytest.skip()\n\n\ndef hours():\n    return 24\n"},
        {Verdict.FAIL_TO_PASS_FAILED},
    ),
    "monkeypatched_runner": (
        {
            b"clock.py": WRONG + b"\n\nfrom _pytest.runner import CallInfo\n_real = CallInfo.from_call.__func__\n\n\n"
            b"def _lie(cls, func, *args, **kwargs):\n    return _real(cls, lambda: None, *args, **kwargs)\n\n\n"
            b"CallInfo.from_call = classmethod(_lie)\n"
        },
        {Verdict.CANARY_PASSED},
    ),
    "unencodable_message": (
        {b"clock.py": b"def noon():\n    raise ValueError('\\udcff')\n\n\ndef hours():\n    return 24\n"},
        {Verdict.FAIL_TO_PASS_FAILED},
    ),
    "memory_hog": (
        {b"clock.py": b"def noon():\n    return len(bytearray(1 << 34))\n\n\ndef hours():\n    return 24\n"},
        {Verdict.FAIL_TO_PASS_FAILED, Verdict.NO_REPORT},
    ),
    "link_outside": ({b"data": (LINK, b"/etc/passwd")}, {Verdict.PATCH_REJECTED}),
}


@dataclass
class Grader:
    """A sandbox with an environment in it, and the task to grade in it."""

    sandbox: Sandbox
    image: str
    builder: Builder
    parent: str
    task: Task

    def patch(self, files: Mapping[bytes, File]) -> bytes:
        other = self.builder.commit(files, parents=[self.parent], branch=None)
        return Repository(self.builder.path).diff(self.parent, other)

    def grade(self, patch: bytes, **changes: Any) -> Grading:
        task = self.task.model_copy(update=changes)
        runner = PytestRunner(python=task.runner.python)
        return grade(self.sandbox, self.image, runner, Repository(self.builder.path), task, patch, {"task": "clock"})


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)], scope="module")
def grader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    folder = tmp_path_factory.mktemp("grading")
    builder = Builder(folder / "source.git")
    parent, commit = builder.commit(PARENT), builder.commit(CHANGE)
    if request.param == "docker":
        sandbox: Sandbox = request.getfixturevalue("docker_sandbox")
        image = str(request.getfixturevalue("built_image"))
    else:
        sandbox, image = ProcessSandbox("test", folder / "state"), bare_pytest(folder / "environment")
    task = task_record(
        commit=commit,
        parent=parent,
        fail_to_pass=("test_clock.py::test_noon",),
        pass_to_pass=("test_clock.py::test_hours",),
        runner=RunnerSpec(name="pytest", python="python3"),
        environment=EnvironmentSpec(
            build_key="b",
            image_digest=image,
            sandbox=sandbox.name,
            memory_bytes=512 * 1024**2,
            cpus=1.0,
            pids=128,
            test_timeout_s=60.0,
        ),
    )
    yield Grader(sandbox, image, builder, parent, task)
    assert sandbox.kill({}) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_patch_gets_its_verdict(grader: Grader, name: str) -> None:
    files, verdicts = CASES[name]
    grading = grader.grade(grader.patch(files))
    assert grading.judgement.verdict in verdicts, grading.judgement
    assert grading.judgement.resolved is (verdicts == {Verdict.RESOLVED})
    for unmet in grading.judgement.unmet_tests:
        unmet.message.encode()  # what is kept must be storable


@pytest.mark.slow
def test_empty_patch_fails_its_fail_to_pass_test(grader: Grader) -> None:
    judgement = grader.grade(b"").judgement
    assert judgement.verdict is Verdict.FAIL_TO_PASS_FAILED
    assert (judgement.fail_to_pass_passed, judgement.pass_to_pass_passed) == (0, 1)
    assert judgement.unmet_tests[0].test_id == "test_clock.py::test_noon"
    assert "assert 11 == 12" in judgement.unmet_tests[0].message


@pytest.mark.slow
def test_sleeping_patch_is_stopped_at_the_deadline(grader: Grader) -> None:
    sleeping = grader.patch({b"clock.py": b"import time\n\n\ndef noon():\n    time.sleep(600)\n"})
    environment = grader.task.environment.model_copy(update={"test_timeout_s": 5.0})
    grading = grader.grade(sleeping, environment=environment)
    assert grading.judgement.verdict is Verdict.TEST_TIMEOUT
    assert 5 <= grading.seconds < 30


@pytest.mark.slow
def test_paths_that_do_not_count_are_named(grader: Grader) -> None:
    grading = grader.grade(grader.patch({**CHANGE, b"conftest.py": FORGING_CONFTEST}))
    assert grading.judgement.resolved
    assert grading.ignored_paths == (b"conftest.py", b"test_clock.py")


@pytest.mark.slow
def test_style_is_told_beside_the_verdict_and_never_decides_it(grader: Grader) -> None:
    style = "test ! -e left && ! grep -n lambda clock.py"
    # The file that the tests leave behind is in another box.
    leaves = b"open('left', 'w').close()\n"
    neat = leaves + b"def noon():\n    return 12\n\n\ndef hours():\n    return 24\n"
    lax = leaves + b"noon = lambda: 12\nhours = lambda: 24\n"
    for product, clean in ((neat, True), (lax, False)):
        grading = grader.grade(grader.patch({b"clock.py": product}), style=style)
        assert grading.judgement.resolved
        assert grading.style is not None
        assert grading.style.clean is clean
        assert ("2:noon = lambda: 12" in grading.style.output) is not clean
    assert grader.grade(b"garbage\n", style=style).style is None
    assert grader.grade(b"").style is None


@pytest.mark.parametrize(
    ("patch", "verdict"),
    [
        (b"garbage\n", Verdict.PATCH_DOES_NOT_APPLY),
        (b"x" * (10 * 1024 * 1024 + 1), Verdict.PATCH_REJECTED),
    ],
    ids=["does_not_apply", "too_large"],
)
def test_refused_patch_opens_no_box(grader: Grader, patch: bytes, verdict: Verdict) -> None:
    broken = Grader(None, "", grader.builder, grader.parent, grader.task)  # type: ignore[arg-type]
    grading = broken.grade(patch)
    assert grading.judgement.verdict is verdict
    assert grading.judgement.detail != ""


def test_key_of_a_verdict_depends_on_all_that_decides_it() -> None:
    keys = [
        verdict_key("task", "patch", "sha256:image", "docker"),
        verdict_key("task2", "patch", "sha256:image", "docker"),
        verdict_key("task", "patch2", "sha256:image", "docker"),
        verdict_key("task", "patch", "sha256:other", "docker"),
        verdict_key("task", "patch", "sha256:image", "process"),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == verdict_key("task", "patch", "sha256:image", "docker")


def test_key_of_a_verdict_depends_on_the_grader(monkeypatch: pytest.MonkeyPatch) -> None:
    before = verdict_key("task", "patch", "sha256:image", "docker")
    monkeypatch.setitem(verdict_key.__globals__, "GRADER_VERSION", "next")
    assert verdict_key("task", "patch", "sha256:image", "docker") != before
