"""A real S3 server on this machine: versitygw over a folder, which `.ci/s3-server` builds from its Go module."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_PROGRAM = os.environ.get("EVALPIPE_S3_SERVER") or shutil.which("versitygw")
_USER, _PASSWORD = "tests", "only for tests"


@dataclass
class S3Server:
    """The server over `folder`, whose folders are its buckets. It can be ended and started again, with all it has."""

    folder: Path
    port: int = field(default_factory=lambda: _free_port())
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert _PROGRAM is not None
        (self.folder / "buckets").mkdir(parents=True, exist_ok=True)
        where = ["--port", f"127.0.0.1:{self.port}", "--access-log", str(self.log), "--quiet"]
        self._process = subprocess.Popen(
            [_PROGRAM, *where, "posix", str(self.folder / "buckets")],
            env={**os.environ, "ROOT_ACCESS_KEY": _USER, "ROOT_SECRET_KEY": _PASSWORD},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError(f"{_PROGRAM} does not answer")

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def make_bucket(self, name: str) -> Path:
        """A new bucket; returns its folder, where an object is the file of its key."""
        path = self.folder / "buckets" / name
        path.mkdir()
        return path

    @property
    def log(self) -> Path:
        return self.folder / "requests.log"

    def requests(self) -> int:
        """How many requests it has answered."""
        return len(self.log.read_bytes().splitlines()) if self.log.exists() else 0

    @property
    def variables(self) -> dict[str, str]:
        """What a user sets in the environment."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": _USER,
            "AWS_SECRET_ACCESS_KEY": _PASSWORD,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def require_s3() -> None:
    """Skip, or fail where the server is required."""
    if _PROGRAM is not None:
        return
    reason = "there is no versitygw: make it with `.ci/s3-server`"
    if os.environ.get("EVALPIPE_REQUIRE_S3") == "1":
        pytest.fail(f"EVALPIPE_REQUIRE_S3=1, and {reason}", pytrace=False)
    pytest.skip(reason)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
