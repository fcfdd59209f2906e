"""`evalpipe issues export` as a user calls it: a process, a workspace, and a forge on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.config import Workspace
from evalpipe.history import IssueTexts
from evalpipe.stages.bench import Workbench
from evalpipe.stages.issues import export_issues, issues_path
from evalpipe_tests.forges.server import TOKEN, FakeForge, FakeGitHub, FakeGitLab, FakeItem, Request, Response, serving

pytestmark = pytest.mark.slow

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_CALL = (sys.executable, "-c", "from evalpipe.cli import main; main()")


@pytest.fixture
def github() -> Iterator[FakeForge]:
    with serving(FakeGitHub(items=[FakeItem(n, pull=n % 3 == 0, updated=n) for n in range(1, 301)])) as forge:
        yield forge


def workspace(root: Path, forge: FakeForge, kind: str = "github", more: str = "") -> Path:
    (root / "data" / "repos").mkdir(parents=True)
    (root / "workspace.yaml").touch()
    (root / "data" / "repos" / "shop.yaml").write_text(
        f"source: ../shop\nrunner:\n  name: pytest\n{more}"
        f"forge:\n  kind: {kind}\n  url: {forge.address}\n  project: {forge.path}\n  token_variable: MY_TOKEN\n"
    )
    return root


def environment(token: str | None = TOKEN) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in (*_PROXIES, "EVALPIPE_WORKSPACE")}
    return kept | ({"MY_TOKEN": token} if token else {})


def start(root: Path, *arguments: str, token: str | None = TOKEN) -> subprocess.Popen[str]:
    command = [*_CALL, "issues", "export", *arguments]
    return subprocess.Popen(
        command, cwd=root, env=environment(token), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def call(root: Path, *arguments: str, token: str | None = TOKEN) -> tuple[int, str, str]:
    process = start(root, *arguments, token=token)
    out, err = process.communicate(timeout=60)
    assert TOKEN not in out + err
    assert not [path for path in root.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    return process.returncode, out, err


def test_the_command_writes_the_file_and_names_the_next_step(tmp_path: Path, github: FakeForge) -> None:
    root = workspace(tmp_path, github)
    code, out, err = call(root, "shop")
    assert (code, out) == (0, "data/issues/shop.jsonl: 200 issues, 100 pull requests; 300 new or changed\n")
    assert err == "next: set `issues: data/issues/shop.jsonl` in data/repos/shop.yaml, then `evalpipe mine shop`\n"
    assert IssueTexts.load(root / "data/issues/shop.jsonl").pull_request(3) is not None
    assert call(root, "shop")[1].endswith("; 0 new or changed\n")


def test_it_goes_where_output_says_and_says_nothing_when_issues_is_set(tmp_path: Path, github: FakeForge) -> None:
    root = workspace(tmp_path, github, more="issues: texts.jsonl\n")
    code, out, err = call(root, "shop", "--output", "texts.jsonl")
    assert (code, err) == (0, "")
    assert out.startswith("texts.jsonl: 200 issues")
    assert (root / "texts.jsonl.state").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_export_goes_on(tmp_path: Path, github: FakeForge, number: signal.Signals) -> None:
    root = workspace(tmp_path, github)
    reached, go_on = threading.Event(), threading.Event()

    def fault(request: Request) -> Response | None:
        if len(github.requests) == 8:
            reached.set()
            go_on.wait(30)
        return None

    github.fault = fault
    process = start(root, "shop")
    assert reached.wait(30)
    process.send_signal(number)
    time.sleep(0.05)
    go_on.set()
    out, err = process.communicate(timeout=30)
    assert process.returncode in (130, -signal.SIGKILL)
    assert out == ""
    assert "Traceback" not in err
    assert not (root / "data/issues/shop.jsonl").exists()
    github.fault = None
    code, out, err = call(root, "shop")
    assert code == 0
    assert "200 issues, 100 pull requests" in out
    assert "300 new or changed" not in out


def test_a_long_rate_limit_is_exit_code_1_and_the_time_to_come_back(tmp_path: Path, github: FakeForge) -> None:
    root = workspace(tmp_path, github)
    reset = str(int(time.time()) + 3000)
    limit = Response(
        403,
        {"message": "API rate limit exceeded for user ID 1."},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset},
    )
    github.fault = lambda _: limit if len(github.requests) > 5 else None
    code, out, err = call(root, "shop")
    assert (code, out) == (1, "")
    assert err.startswith(f"evalpipe: the rate limit of {github.address} is used up until ")
    assert err.endswith("(in 50 min); what was read is kept: run the same again then\n")


def test_a_wrong_token_is_exit_code_1_in_one_line(tmp_path: Path, github: FakeForge) -> None:
    root = workspace(tmp_path, github)
    github.token = "another"
    code, out, err = call(root, "shop")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "refuses the token in MY_TOKEN (401: Bad credentials)" in err


def test_a_repository_without_a_forge_is_wrong_configuration(tmp_path: Path, github: FakeForge) -> None:
    root = workspace(tmp_path, github)
    path = root / "data/repos/shop.yaml"
    path.write_text(path.read_text().partition("forge:")[0])
    code, _, err = call(root, "shop")
    told = "evalpipe: data/repos/shop.yaml: forge: is missing; write kind and project, as docs/issues.md shows\n"
    assert (code, err) == (2, told)
    code, _, err = call(root, "shopp")
    assert (code, "did you mean 'shop'" in err) == (2, True)


def test_a_renamed_project_is_told(tmp_path: Path) -> None:
    with serving(FakeGitLab(path="group/shop", items=[FakeItem(1)]), base="/lab") as forge:
        root = workspace(tmp_path, forge, "gitlab")
        forge.old_paths, forge.path = ("group/shop",), "group/store"
        code, _, err = call(root, "shop", token=None)
        assert code == 0
        assert "group/shop is called group/store now: write that as `forge.project`" in err
        assert "without a token (MY_TOKEN)" in err


def test_a_stage_call_with_the_workbench(tmp_path: Path, github: FakeForge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    bench = Workbench(Workspace(workspace(tmp_path, github)))
    config = bench.workspace.load_repository("shop")
    said: list[str] = []
    done = export_issues(bench, config, issues_path(bench, config), said.append)
    assert (done.issues, done.output, said) == (200, tmp_path / "data/issues/shop.jsonl", [])
