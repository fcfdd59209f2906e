"""What the tests of the gateway share: the real key of the environment."""

import pytest

from evalpipe_tests.gateway.asking import KEY_VARIABLE, REAL_KEY


@pytest.fixture(autouse=True)
def real_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, REAL_KEY)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
