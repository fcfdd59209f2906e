"""One court for the whole red team: every agent is tried once, two side by side, before the first test looks."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from evalpipe.sandbox import DockerSandbox
from evalpipe_tests.redteam.cheats import AGENTS
from evalpipe_tests.redteam.shop import Court, Trial

SECRET = "sk-of-the-host-4f1c9a"


@pytest.fixture(scope="session")
def court(docker_sandbox: DockerSandbox, built_image: str, tmp_path_factory: pytest.TempPathFactory) -> Court:
    return Court(docker_sandbox, built_image, tmp_path_factory.mktemp("court"))


@pytest.fixture(scope="session")
def trials(court: Court) -> Mapping[str, Trial]:
    """What came of each agent, by its name."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
            patch.setenv(name, SECRET)
        scripts = {
            name: agent.script.replace("COMMIT_OF_THE_CHANGE", court.task.commit) for name, agent in AGENTS.items()
        }
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(scripts, pool.map(court.trial, scripts.values()), strict=True))
