"""The forwarders inside a container: a port of loopback reaches the gateway while the agent's command runs."""

import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalpipe.gateway import Gateway, WireForm
from evalpipe.gateway.forwarders import NODE_FORWARDER, PYTHON_FORWARDER, forwarder
from evalpipe_tests.gateway.asking import provider
from evalpipe_tests.model_replies import Say
from evalpipe_tests.model_server import Drop, ModelServer

FORM = WireForm.ANTHROPIC_MESSAGES
_ASK = """
import http.client, sys
port, key, text = int(sys.argv[1]), sys.argv[2], sys.stdin.read()
for _ in range(3):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    body = '{"model": "m", "stream": true, "x": "%s"}' % ("y" * 300000)
    connection.request("POST", "/v1/messages", body, {"x-api-key": key})
    reply = connection.getresponse()
    try:
        print(reply.status, len(reply.read()) > 200000, text)
    except Exception as error:
        print(reply.status, type(error).__name__, text)
sys.exit(7)
"""


@pytest.fixture(params=[PYTHON_FORWARDER, NODE_FORWARDER])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    name: str = request.param
    interpreter = sys.executable if name == PYTHON_FORWARDER else shutil.which("node")
    if interpreter is None:
        pytest.skip("Node is not here")
    (tmp_path / name).write_bytes(forwarder(name))
    return [interpreter, str(tmp_path / name)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("step", "line"),
    [(Say("z" * 300_000), "200 True hello"), (Drop(), "200 IncompleteRead hello")],
    ids=["whole", "cut"],
)
def test_a_command_reaches_the_model_and_its_streams_and_exit_code_are_its_own(
    start: list[str], step: Say | Drop, line: str
) -> None:
    with ModelServer([step]) as server, Gateway([provider(server.url, FORM)]) as gateway:
        attempt, port = gateway.open_attempt("a", "test"), str(free_port())
        command = [*start, str(attempt.socket), port, sys.executable, "-c", _ASK, port, attempt.key]
        ended = subprocess.run(command, input=b"hello", capture_output=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (7, b"")
    assert ended.stdout.decode().splitlines() == [line] * 3


def test_a_command_is_stopped_with_its_forwarder(start: list[str], tmp_path: Path) -> None:
    marker = tmp_path / "running"
    code = f"import pathlib, time; pathlib.Path({str(marker)!r}).touch(); time.sleep(60)"
    process = subprocess.Popen([*start, "/nowhere", str(free_port()), sys.executable, "-c", code])
    deadline = time.monotonic() + 20
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM
