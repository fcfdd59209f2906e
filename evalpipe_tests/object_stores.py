"""Real object stores on this machine, over a folder: versitygw for S3, fake-gcs-server for Google Cloud Storage.

`.ci/object-stores` builds both from their Go modules.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

_USER, _PASSWORD = "tests", "only for tests"


class Scheme(StrEnum):
    """What a store speaks, as its URLs begin."""

    S3 = "s3"
    GS = "gs"


_PROGRAMS = {
    Scheme.S3: os.environ.get("EVALPIPE_S3_SERVER") or shutil.which("versitygw"),
    Scheme.GS: os.environ.get("EVALPIPE_GCS_SERVER") or shutil.which("fake-gcs-server"),
}


@dataclass
class StoreServer:
    """The server over `folder`, whose folders are its buckets. It can be ended and started again, with all it has."""

    folder: Path
    scheme: Scheme = Scheme.S3
    port: int = field(default_factory=lambda: _free_port())
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers. Skips the test where it is not on this machine, and not required."""
        program = _PROGRAMS[self.scheme] or _unavailable(self.scheme)
        buckets = str(self.folder / "buckets")
        Path(buckets).mkdir(parents=True, exist_ok=True)
        arguments = {
            Scheme.S3: [
                *("--port", f"127.0.0.1:{self.port}", "--access-log", str(self.log), "--quiet"),
                *("posix", buckets),
            ],
            Scheme.GS: [
                *("-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port)),
                *("-public-host", f"127.0.0.1:{self.port}", "-backend", "filesystem", "-filesystem-root", buckets),
            ],
        }
        self._process = subprocess.Popen(
            [program, *arguments[self.scheme]],
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
        raise AssertionError(f"{program} does not answer")

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
        """How many requests a server of S3 has answered."""
        return len(self.log.read_bytes().splitlines()) if self.log.exists() else 0

    @property
    def variables(self) -> dict[str, str]:
        """What a user sets in the environment."""
        address = f"http://127.0.0.1:{self.port}"
        if self.scheme is Scheme.GS:
            # The second: what needs credentials of Google's is not asked for.
            return {"STORAGE_EMULATOR_HOST": address, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
        return {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": _USER,
            "AWS_SECRET_ACCESS_KEY": _PASSWORD,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def _unavailable(scheme: Scheme) -> str:
    reason = f"there is no server for {scheme}:// here: make it with `.ci/object-stores`"
    if os.environ.get("EVALPIPE_REQUIRE_STORES") == "1":
        pytest.fail(f"EVALPIPE_REQUIRE_STORES=1, and {reason}", pytrace=False)
    pytest.skip(reason)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
