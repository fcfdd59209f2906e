"""An S3 server for the tests of lakes that are in a store, one for all; each test has a bucket of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from evalpipe.lake import working_copy
from evalpipe_tests.object_stores import StoreServer

_numbers = count()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    """The server, not for tests that end it."""
    server = StoreServer(tmp_path_factory.mktemp("s3"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def url(s3_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place for a lake in a bucket of its own. What other machines write is seen at once."""
    for name, value in s3_server.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(working_copy, "FRESH_S", 0.0)
    bucket = f"bucket-{next(_numbers)}"
    s3_server.make_bucket(bucket)
    return f"s3://{bucket}/team"
