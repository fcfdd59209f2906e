"""Waiting and giving up: rate limits in all their forms, broken connections, certificates."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.forges import ForgeUnreachable, RateLimited
from evalpipe.forges.outcome import Refusal
from evalpipe.forges.patience import rate_limit
from evalpipe_tests.forges.conftest import Caller
from evalpipe_tests.forges.server import FakeItem, Response

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
IN_A_MINUTE = str(int(NOW.timestamp()) + 60)


@pytest.mark.parametrize(
    ("status", "headers", "message", "seconds"),
    [
        (429, {"retry-after": "7"}, "", 7.0),
        (403, {"retry-after": "7"}, "secondary", 7.0),
        (429, {"retry-after": "Mon, 01 Jun 2026 12:00:30 GMT"}, "", 30.0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_A_MINUTE}, "", 61.0),
        (429, {"ratelimit-remaining": "3", "ratelimit-reset": IN_A_MINUTE}, "", 61.0),
        (429, {"ratelimit-reset": IN_A_MINUTE, "date": "Mon, 01 Jun 2026 12:00:50 GMT"}, "", 11.0),
        (429, {"ratelimit-reset": "5"}, "", 1.0),
        (429, {}, "", 60.0),
        (429, {"retry-after": "soon"}, "", 60.0),
        (429, {"retry-after": "inf"}, "", 60.0),
        (403, {}, "You have exceeded a secondary rate limit.", 60.0),
        (403, {"x-ratelimit-remaining": "4999", "x-ratelimit-reset": IN_A_MINUTE}, "Must have admin rights", None),
        (403, {}, "Forbidden", None),
        (404, {"retry-after": "7"}, "", None),
        (503, {"retry-after": "7"}, "", None),
    ],
)
def test_how_long_a_rate_limit_lasts(status: int, headers: dict[str, str], message: str, seconds: float | None) -> None:
    assert rate_limit(Refusal(status, headers, message), NOW) == seconds


@given(st.sampled_from(["retry-after", "x-ratelimit-reset", "ratelimit-reset", "date"]), st.text(max_size=40))
def test_no_header_makes_it_stumble(name: str, value: str) -> None:
    found = rate_limit(Refusal(429, {name: value}, ""), NOW)
    assert found is not None
    assert found <= 1e10


@pytest.mark.parametrize("status", [403, 429])
def test_a_short_rate_limit_is_waited_for_with_a_word(github: Caller, status: int) -> None:
    github.forge.items = [FakeItem(1)]
    answers = [Response(status, {"message": "slow down"}, {"Retry-After": "9"})]
    github.forge.fault = lambda request: answers.pop() if answers and "issues" in request.path else None
    assert github.export().issues == 1
    assert github.slept == [9.0]
    assert github.said == [f"{github.forge.address} asks for a pause (rate limit): waiting 9 s"]


def test_graphql_says_its_rate_limit_with_status_200(github: Caller) -> None:
    github.forge.items = [FakeItem(1)]
    limited = Response(
        200, {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}, {"Retry-After": "9"}
    )
    answers = [limited]
    github.forge.fault = lambda request: answers.pop() if answers and "graphql" in request.path else None
    assert github.export().issues == 1
    assert github.slept == [9.0]


def test_a_forge_that_asks_for_one_pause_after_another_is_left(gitlab: Caller) -> None:
    gitlab.forge.fault = lambda _: Response(429, b"Retry later", {"Retry-After": "1", "Content-Type": "text/plain"})
    with pytest.raises(RateLimited):
        gitlab.export()
    assert gitlab.slept == [1.0] * 5


def test_nobody_at_the_address(github: Caller, gitlab: Caller) -> None:
    for caller in (github, gitlab):
        caller.forge.address = "http://127.0.0.1:9"
        with pytest.raises(ForgeUnreachable, match=r"the connection to http://127\.0\.0\.1:9 fails"):
            caller.export()
        assert caller.slept == [1.0, 2.0, 4.0, 8.0]


def test_a_host_that_does_not_exist_is_said_at_once(github: Caller, gitlab: Caller) -> None:
    for caller in (github, gitlab):
        caller.forge.address = "https://no-such-host.invalid"
        with pytest.raises(ForgeUnreachable, match="no such host"):
            caller.export()
        assert caller.slept == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that its own authority signed, with its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key, own = folder / "key.pem", folder / "own.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=forge"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(own)]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "both.pem").write_bytes(key.read_bytes() + own.read_bytes())
    return folder / "both.pem"


@pytest.fixture
def secure(certificate: Path) -> Iterator[str]:
    """The address of a server with that certificate, which knows no project."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_certificate_of_an_unknown_authority_is_refused(github: Caller, gitlab: Caller, secure: str) -> None:
    for caller in (github, gitlab):
        caller.forge.address = secure
        with pytest.raises(ForgeUnreachable, match=r"not trusted; .* REQUESTS_CA_BUNDLE or SSL_CERT_FILE"):
            caller.export()
        assert caller.slept == []


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_corporate_authority_is_taken_from_the_environment(
    github: Caller, gitlab: Caller, secure: str, certificate: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    from evalpipe.forges import ProjectMissing

    monkeypatch.setenv(variable, str(certificate.with_name("own.pem")))
    for caller in (github, gitlab):
        caller.forge.address = secure
        with pytest.raises(ProjectMissing):
            caller.export()


def test_a_file_of_certificates_that_is_not_there(
    github: Caller, gitlab: Caller, secure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    for caller in (github, gitlab):
        caller.forge.address = secure
        with pytest.raises(ForgeUnreachable, match=r"no file of certificates /nowhere/ca\.pem"):
            caller.export()
