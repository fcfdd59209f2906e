import http.server
import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.config import Workspace, doctor
from evalpipe.config.doctor import Finding, examine_machine, is_fit
from evalpipe_tests.config.builders import REPOSITORY, make_workspace

IMAGE_ID = "sha256:" + "a" * 64


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "ws")


def _git(folder: Path, *arguments: str) -> None:
    folder.mkdir(exist_ok=True)
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def _repository(folder: Path, commits: int = 1) -> None:
    _git(folder, "init", "-q", "-b", "main")
    for number in range(commits):
        _git(folder, "commit", "-q", "--allow-empty", "-m", f"change {number}")


def _source(workspace: Workspace, text: str = REPOSITORY) -> Finding:
    (workspace.repos_dir / "shop.yaml").write_text(text)
    return next(finding for finding in examine_machine(workspace) if finding.name == "source of shop")


def _named(findings: list[Finding], name: str) -> Finding:
    return next(finding for finding in findings if finding.name == name)


def test_every_finding_that_is_not_well_says_what_to_do(workspace: Workspace) -> None:
    (workspace.repos_dir / "shop.yaml").write_text("runner: 3\n")
    findings = examine_machine(workspace)
    assert {"python", "git", "docker engine", "unshare", "disk", "memory", "CA bundle", "workspace"} <= {
        finding.name for finding in findings
    }
    assert all(finding.remedy for finding in findings if not finding.ok)
    assert all(finding.detail for finding in findings)


def test_without_a_workspace_the_machine_can_still_be_fit() -> None:
    finding = _named(examine_machine(None), "workspace")
    assert not finding.ok
    assert not finding.required
    assert "evalpipe init DIR" in finding.remedy


def test_only_required_findings_make_a_machine_unfit() -> None:
    assert is_fit([Finding("a", True, "x"), Finding("b", False, "x", "y", required=False)])
    assert not is_fit([Finding("a", True, "x"), Finding("b", False, "x", "y")])


def test_the_doctor_does_not_load_dagster() -> None:
    code = "import sys, evalpipe.config.doctor as d; d.examine_machine(None); print('dagster' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_broken_file_and_a_broken_reference_are_findings(workspace: Workspace) -> None:
    (workspace.repos_dir / "shop.yaml").write_text("runner: 3\n")
    (workspace.agents_dir / "empty.yaml").write_text("adapter: empty\n")
    (workspace.sweeps_dir / "q.yaml").write_text("task_set: t\nagents: [emty]\nsamples: 1\ndecision: x\n")
    findings = examine_machine(workspace)
    details = [finding.detail for finding in findings if not finding.ok and finding.required]
    assert any(
        detail.startswith("data/repos/shop.yaml:1: runner: must hold fields of its own: name") for detail in details
    )
    assert any("did you mean 'empty'?" in detail for detail in details)
    assert not is_fit(findings)


def test_a_good_source_is_well(workspace: Workspace) -> None:
    _repository(workspace.root.parent / "shop")
    finding = _source(workspace)
    assert finding.ok
    assert finding.detail == str(workspace.root.parent / "shop")


def test_a_url_is_not_looked_at(workspace: Workspace) -> None:
    finding = _source(workspace, REPOSITORY.replace("../shop", "https://shop.invalid/x.git"))
    assert finding.ok
    assert "seen when it is mined" in finding.detail


def test_a_source_that_is_not_there_is_named(workspace: Workspace) -> None:
    finding = _source(workspace)
    assert finding.detail == f"there is no folder {workspace.root.parent / 'shop'}"
    assert "data/repos/shop.yaml" in finding.remedy


def test_a_folder_inside_another_repository_is_no_repository(workspace: Workspace) -> None:
    _repository(workspace.root.parent)
    (workspace.root.parent / "shop").mkdir()
    finding = _source(workspace)
    assert not finding.ok
    assert "not a git repository" in finding.detail


def test_a_shallow_clone_is_refused_with_the_way_out(workspace: Workspace) -> None:
    top = workspace.root.parent
    _repository(top / "whole", commits=3)
    _git(top, "clone", "-q", "--depth", "1", f"file://{top}/whole", "shop")
    finding = _source(workspace)
    assert not finding.ok
    assert f"git -C {top / 'shop'} fetch --unshallow" in finding.detail


def test_an_empty_repository_and_a_missing_mainline_are_named(workspace: Workspace) -> None:
    shop = workspace.root.parent / "shop"
    _repository(shop, commits=0)
    assert _source(workspace).detail == f"{shop} has no commit yet"
    _repository(shop)
    assert _source(workspace, REPOSITORY + "mainline: main\n").ok
    assert _source(workspace, REPOSITORY + "mainline: mian\n").detail == f"{shop} has no branch 'mian'"


@pytest.mark.parametrize(
    ("version", "ok", "required"),
    [
        ((2, 30, 8), False, True),
        ((2, 30, 9), False, False),
        ((2, 39, 2), False, False),
        ((2, 39, 3), True, True),
        ((3, 0), True, True),
    ],
)
def test_an_old_git_is_a_fault_or_advice(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], ok: bool, required: bool
) -> None:
    monkeypatch.setattr(doctor, "_git_version", lambda: version)
    finding = _named(examine_machine(None), "git")
    assert (finding.ok, finding.required) == (ok, required)


def test_a_machine_without_git_is_unfit_and_nothing_breaks(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.repos_dir / "shop.yaml").write_text(REPOSITORY)
    monkeypatch.setenv("PATH", "/nowhere")
    findings = examine_machine(workspace)
    assert not _named(findings, "git").ok
    assert not _named(findings, "unshare").ok
    assert not is_fit(findings)


def test_little_disk_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_DISK", 10**18)
    assert not _named(examine_machine(None), "disk").ok


def test_without_an_engine_the_process_sandbox_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr("docker.utils.utils.DEFAULT_UNIX_SOCKET", f"http+unix://{tmp_path}/no.sock")
    finding = _named(examine_machine(None), "docker engine")
    assert (finding.ok, finding.required) == (False, False)
    assert "process sandbox" in finding.remedy


def test_an_engine_that_is_named_must_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    finding = _named(examine_machine(None), "docker engine")
    assert (finding.ok, finding.required) == (False, True)
    assert "no.sock" in finding.remedy


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine that knows its version and one image, on a socket of its own."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/version"):
                self._answer(200, {"Version": "28.0.1", "ApiVersion": "1.48"})
            elif "/images/have:1/" in self.path:
                self._answer(200, {"Id": IMAGE_ID})
            else:
                self._answer(404, {"message": "No such image"})

        def _answer(self, status: int, body: dict[str, str]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

        def address_string(self) -> str:
            return "socket"

    path = tmp_path / "engine.sock"
    with socketserver.ThreadingUnixStreamServer(str(path), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        yield
        server.shutdown()


@pytest.mark.usefixtures("engine")
def test_an_engine_tells_its_version_and_which_images_it_has(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALPIPE_BASE_IMAGE", "have:1")
    (workspace.repos_dir / "one.yaml").write_text(REPOSITORY)
    lacking = REPOSITORY + "environment:\n  template: image\n  image: lack:1\n"
    (workspace.repos_dir / "two.yaml").write_text(lacking)
    findings = examine_machine(workspace)
    assert _named(findings, "docker engine").detail == "28.0.1"
    assert _named(findings, "image have:1").detail == IMAGE_ID
    lack = _named(findings, "image lack:1")
    assert (lack.ok, lack.required) == (False, False)
    assert "docker pull lack:1" in lack.remedy


def test_network_of_builds_is_shown_without_secrets_and_a_wrong_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path)
    monkeypatch.setenv("MIRROR_TOKEN", "tok-123")
    (workspace.data / "network.yaml").write_text("mirrors:\n  pypi: https://${MIRROR_TOKEN}@host/simple\n")
    found = {finding.name: finding for finding in examine_machine(workspace)}
    assert found["package mirrors"].detail.startswith("pypi https://***@host/simple (mirrors.pypi in data/network.yaml")
    assert not [finding for finding in found.values() if "tok-123" in finding.detail + finding.remedy]
    (workspace.data / "network.yaml").write_text("mirror: 1\n")
    wrong = next(finding for finding in examine_machine(workspace) if finding.name == "network")
    assert (wrong.ok, wrong.required, wrong.remedy) == (False, True, "mend data/network.yaml")
