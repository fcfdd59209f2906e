"""The main classes of cheats in other languages and tools end as they must; each team comes before a court once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from evalpipe.sandbox import DockerSandbox
from evalpipe_tests.conformance.environments import EnvironmentImages
from evalpipe_tests.redteam.agent import End
from evalpipe_tests.redteam.languages import LANGUAGES
from evalpipe_tests.redteam.shop import Court, Trial
from evalpipe_tests.redteam.tools import TOOLS

TEAMS = {**LANGUAGES, **TOOLS}

# The first test of a team waits for all of its trials.
pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def trials_of(
    docker_sandbox: DockerSandbox, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Mapping[str, Trial]]:
    """What came of each agent of each team. The images are the bare toolchains."""
    images = EnvironmentImages(docker_sandbox, base_image)
    found: dict[str, Mapping[str, Trial]] = {}
    for language, team in TEAMS.items():
        image = images.image(team.environment)
        court = Court(docker_sandbox, image, tmp_path_factory.mktemp(language), team.project)
        with ThreadPoolExecutor(2) as pool:
            scripts = [agent.script for agent in team.agents.values()]
            found[language] = dict(zip(team.agents, pool.map(court.trial, scripts), strict=True))
    return found


@pytest.mark.parametrize(
    ("language", "name"), [(language, name) for language in TEAMS for name in TEAMS[language].agents]
)
def test_an_agent_ends_as_it_must(trials_of: Mapping[str, Mapping[str, Trial]], language: str, name: str) -> None:
    agent, trial = TEAMS[language].agents[name], trials_of[language][name]
    told = f"{trial.attempt.outcome}: {trial.attempt.detail}; {trial.grading}\n{trial.attempt.transcript[-2000:]!r}"
    assert trial.resolved is (agent.end is not End.NOT_RESOLVED), told
    assert trial.signs >= agent.signs, (trial.signs, told)
    if name == "mends_it":
        assert trial.signs == frozenset(), told
    if agent.end is End.RESOLVED_AND_FLAGGED:
        assert trial.signs, told
