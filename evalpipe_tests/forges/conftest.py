"""A forge on this machine, and exports from it with a clock that does not wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalpipe.forges import Exported, GitHubForge, GitLabForge, Patience, Place, Token, export
from evalpipe.lake import write_atomically
from evalpipe_tests.forges.server import TOKEN, FakeForge, FakeGitHub, FakeGitLab, serving


@dataclass
class Caller:
    """Exports from a served forge into a file. `said` and `slept` are what the user sees of it."""

    forge: FakeForge
    output: Path
    token: str | None = TOKEN
    path: str | None = None
    said: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    now: datetime = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)

    def export(self) -> Exported:
        name, variable = ("GitHub", "GITHUB_TOKEN") if isinstance(self.forge, FakeGitHub) else ("GitLab", "LAB_TOKEN")
        token = None if self.token is None else Token(self.token)
        patience = Patience(Place(name, self.forge.address, token, variable), self.said.append, self.sleep, self.clock)
        client = GitHubForge if name == "GitHub" else GitLabForge
        with client(self.path or self.forge.path, patience) as opened:
            return export(opened, self.output, write_atomically, self.said.append)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    def clock(self) -> datetime:
        return self.now

    @property
    def state(self) -> Path:
        return self.output.with_name(f"{self.output.name}.state")


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no certificates of the machine that runs the tests."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[Caller]:
    with serving(FakeGitHub()) as forge:
        yield Caller(forge, tmp_path / "issues" / "shop.jsonl")


@pytest.fixture
def gitlab(tmp_path: Path) -> Iterator[Caller]:
    with serving(FakeGitLab(path="group/sub/shop"), base="/lab") as forge:
        yield Caller(forge, tmp_path / "issues" / "shop.jsonl")
