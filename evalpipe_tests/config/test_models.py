from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalpipe.config import (
    AgentConfig,
    EnvironmentConfig,
    LakeConfig,
    NetworkConfig,
    ProviderConfig,
    RepositoryConfig,
    SweepConfig,
    digest,
    resolve_base_image,
)
from evalpipe.config.repository import DEFAULT_BASE_IMAGES, TemplateName
from evalpipe.config.values import ConfigModel, is_slug, parse_memory

REPOSITORY: dict[str, Any] = {"name": "shop", "source": "../shop", "runner": {"name": "pytest"}}
CANARY = {"file": "tests/canary.sh", "text": "exit 1", "test_id": "canary"}
GENERIC = {"name": "generic", "command": "make test", "report_format": "junit", "reports": ["*.xml"], "canary": CANARY}
SWEEP: dict[str, Any] = {
    "name": "q4",
    "task_set": "t",
    "agents": ["a", "b"],
    "samples": 3,
    "decision": "whether to buy",
}


def test_a_repository_has_the_documented_defaults() -> None:
    repository = RepositoryConfig.model_validate(REPOSITORY)
    assert repository.mainline is None
    assert (repository.runner.python, repository.runner.arguments) == ("python3", ())
    assert repository.environment == EnvironmentConfig.model_validate({})
    assert (repository.paths.tests, repository.paths.source, repository.paths.generated) == ((), (), ())
    assert (repository.max_files, repository.require_issue, repository.issues) == (25, False, None)
    validation = repository.validation
    assert (validation.timeout_s, validation.memory, validation.cpus, validation.pids) == (600, 2 * 1024**3, 1, 512)


def test_a_repository_names_its_jira_projects_and_its_own_categories() -> None:
    more = {"jira_projects": ["ABC", "A_1"], "categories": {"#12": "other", "0123abc": "test_only"}}
    repository = RepositoryConfig.model_validate({**REPOSITORY, **more})
    assert repository.jira_projects == ("ABC", "A_1")
    assert repository.categories == {"#12": "other", "0123abc": "test_only"}
    assert RepositoryConfig.model_validate({**REPOSITORY, "categories": {"shop-12-0123456789": "other"}}).categories


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"jira_projects": ["ABC-12"]}, "not the key of a Jira project"),
        ({"jira_projects": ["abc"]}, "not the key of a Jira project"),
        ({"categories": {"12": "other"}}, "names no change"),
        ({"categories": {"#12": "feature"}}, "single_file_repair"),
    ],
)
def test_what_names_no_jira_project_and_no_change_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RepositoryConfig.model_validate({**REPOSITORY, **more})


def test_a_sweep_has_the_documented_defaults() -> None:
    sweep = SweepConfig.model_validate(SWEEP)
    assert (sweep.modes, sweep.weights, sweep.comparisons, sweep.archived) == (("original",), None, (), False)
    limits = sweep.limits
    assert (limits.timeout_s, limits.memory, limits.cpus, limits.pids) == (900, 4 * 1024**3, 2, 512)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata"])
def test_a_sweep_has_a_time_zone(zone: str) -> None:
    assert SweepConfig.model_validate({**SWEEP, "time_zone": zone}).time_zone == zone
    assert SweepConfig.model_validate(SWEEP).time_zone == "UTC"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("time_zone", "Europe/Berln", "did you mean 'Europe/Berlin'"),
        ("time_zone", "UTC+2", "is no time zone"),
        ("time_zone", "../etc/passwd", "is no time zone"),
        ("owners", ["payments"], "use team:NAME or an e-mail address"),
        ("owners", ["team:"], "use team:NAME or an e-mail address"),
        ("owners", ["a@b"], "use team:NAME or an e-mail address"),
        ("smallest_difference", 10.0, "less than or equal to 1"),
        ("smallest_difference", 0, "greater than 0"),
    ],
)
def test_what_is_no_time_zone_and_no_difference_is_refused(field: str, value: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SweepConfig.model_validate({**SWEEP, field: value})


@pytest.mark.parametrize("adapter", ["reference", "empty"])
def test_an_agent_without_a_model_says_none(adapter: str) -> None:
    agent = AgentConfig.model_validate({"name": "a", "adapter": adapter})
    assert (agent.model, agent.model_version) == ("none", "1")
    assert (agent.scaffold, agent.scaffold_version) == ("none", "1")
    assert (agent.retry_policy.max_attempts, agent.tools, agent.max_turns) == (3, (), None)


@pytest.mark.parametrize(
    ("source", "is_url"),
    [
        ("https://example.com/shop.git", True),
        ("file:///srv/shop", True),
        ("git@example.com:team/shop.git", True),
        ("../shop", False),
        ("/srv/a@b", False),
        ("shop", False),
    ],
)
def test_a_url_is_told_from_a_path(source: str, is_url: bool) -> None:
    assert RepositoryConfig.model_validate({**REPOSITORY, "source": source}).source_is_url is is_url


def test_the_base_image_is_the_files_then_the_machines_then_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = EnvironmentConfig.model_validate({})
    monkeypatch.delenv("EVALPIPE_BASE_IMAGE", raising=False)
    assert resolve_base_image(plain) == "python:3.12-slim"
    monkeypatch.setenv("EVALPIPE_BASE_IMAGE", "local/base:1")
    assert resolve_base_image(plain) == "local/base:1"
    assert resolve_base_image(EnvironmentConfig.model_validate({"base_image": "own:2"})) == "own:2"


def test_every_template_has_a_base_and_a_variable_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DEFAULT_BASE_IMAGES:
        monkeypatch.delenv(f"EVALPIPE_BASE_IMAGE_{name.upper()}", raising=False)
    monkeypatch.setenv("EVALPIPE_BASE_IMAGE", "local/python:1")
    monkeypatch.setenv("EVALPIPE_BASE_IMAGE_GO", "local/go:1")
    found = {
        name: resolve_base_image(EnvironmentConfig.model_validate({"template": name})) for name in DEFAULT_BASE_IMAGES
    }
    assert found["python"] == found["packages"] == "local/python:1"
    assert found["go"] == "local/go:1"
    assert found["rust"] == DEFAULT_BASE_IMAGES["rust"]
    assert found.keys() == {*get_args(TemplateName)} - {"dockerfile", "image"}


@pytest.mark.parametrize(
    ("written", "size"),
    [("2g", 2 * 1024**3), ("512M", 512 * 1024**2), ("1.5g", 1536 * 1024**2), (8388608, 8388608), ("1t", 1024**4)],
)
def test_memory_is_read_as_docker_reads_it(written: str | int, size: int) -> None:
    assert parse_memory(written) == size


@pytest.mark.parametrize("written", ["2x", "", "-1g", "g", 2, "5m", True, 2.5, None, "2 gb", "1e9"])
def test_what_is_no_memory_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="write it as 512m or 2g"):
        parse_memory(written)


@given(st.integers(min_value=6, max_value=10**6))
def test_a_memory_size_in_megabytes_is_exact(megabytes: int) -> None:
    assert parse_memory(f"{megabytes}m") == megabytes * 1024**2


@pytest.mark.parametrize(
    ("text", "good"),
    [("a", True), ("2026q4", True), ("a" * 40, True), ("a" * 41, False), ("A", False), ("-a", False), ("a\n", False)],
)
def test_names_are_slugs(text: str, good: bool) -> None:
    assert is_slug(text) is good


@pytest.mark.parametrize(
    "change",
    [
        {"weights": {"single_file_repair": 0.5, "other": 0.5}},
        {"weights": {"single_file_repair": 0.1, "multi_file_feature": 0.2, "other": 0.7}},
        {"comparisons": [["a", "b"]]},
        {"region": "eu", "currency": "EUR", "usd_rate": 0.92},
        {"region": "us", "currency": "USD"},
        {"modes": ["original", "terse"]},
    ],
)
def test_a_right_sweep_is_accepted(change: dict[str, Any]) -> None:
    SweepConfig.model_validate({**SWEEP, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"agents": []},
        {"agents": ["a", "a"]},
        {"samples": 0},
        {"samples": True},
        {"modes": []},
        {"modes": ["terse", "terse"]},
        {"weights": {"other": 0.9}},
        {"weights": {"other": 1.5, "single_file_repair": -0.5}},
        {"weights": {"bugfix": 1}},
        {"weights": {}},
        {"comparisons": [["a", "c"]]},
        {"comparisons": [["a", "a"]]},
        {"comparisons": [["a", "b"], ["b", "a"]]},
        {"region": "eu"},
        {"currency": "EUR", "usd_rate": 0.92},
        {"region": "eu", "currency": "EUR"},
        {"region": "us", "currency": "USD", "usd_rate": 0.92},
        {"usd_rate": 0.92},
        {"region": "eu", "currency": "euro"},
        {"decision": "  "},
        {"limits": {"timeout_s": float("inf")}},
    ],
)
def test_a_wrong_sweep_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SweepConfig.model_validate({**SWEEP, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"source": "--upload-pack=x"},
        {"mainline": "-x"},
        {"environment": {"template": "image"}},
        {"environment": {"image": "x"}},
        {"environment": {"template": "image", "image": "x", "packages": ["pytest"]}},
        {"environment": {"packages": ["-r requirements.txt"]}},
        {"environment": {"template": "dockerfile"}},
        {"environment": {"dockerfile": "own/Dockerfile"}},
        {"environment": {"template": "dockerfile", "dockerfile": "own/Dockerfile", "setup": ["true"]}},
        {"environment": {"template": "image", "image": "x", "dockerfile": "own/Dockerfile"}},
        {"environment": {"template": "go", "packages": ["pytest"]}},
        {"environment": {"template": "cobol"}},
        {"paths": {"tests": ["../tests"]}},
        {"paths": {"tests": ["/tests"]}},
        {"runner": {"name": "ctest"}},
        {"runner": {"name": "pytest", "command": "make test"}},
        {"runner": {"name": "pytest", "reports": ["*.xml"]}},
        {"runner": {"name": "pytest", "canary": CANARY}},
        {"runner": {**GENERIC, "command": None}},
        {"runner": {**GENERIC, "report_format": None}},
        {"runner": {**GENERIC, "report_format": "xunit"}},
        {"runner": {**GENERIC, "canary": None}},
        {"runner": {**GENERIC, "canary": {**CANARY, "file": "../x"}}},
        {"runner": {**GENERIC, "canary": {"file": "x"}}},
        {"runner": {**GENERIC, "reports": []}},
        {"runner": {**GENERIC, "reports": ["/tmp/x.xml"]}},
        {"runner": {**GENERIC, "arguments": ["-v"]}},
        {"validation": {"pids": 0}},
    ],
)
def test_a_wrong_repository_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RepositoryConfig.model_validate({**REPOSITORY, **change})


def test_a_generic_runner_says_all_that_it_needs_and_no_other_does() -> None:
    RepositoryConfig.model_validate({**REPOSITORY, "runner": GENERIC})
    RepositoryConfig.model_validate({**REPOSITORY, "runner": {**GENERIC, "report_format": "tap", "reports": []}})
    with pytest.raises(ValidationError) as caught:
        RepositoryConfig.model_validate({**REPOSITORY, "runner": {"name": "generic"}})
    assert [fault[0] for fault in caught.value.errors()[0]["ctx"]["faults"]] == ["command", "report_format", "canary"]


def test_models_never_change() -> None:
    sweep = SweepConfig.model_validate(SWEEP)
    with pytest.raises(ValidationError):
        sweep.samples = 5


def test_the_digest_is_of_the_content_and_not_of_the_layout() -> None:
    sweep = SweepConfig.model_validate(SWEEP)
    turned = SweepConfig.model_validate(dict(reversed([*SWEEP.items(), ("modes", ["original"])])))
    assert digest(sweep) == digest(turned)
    assert len(digest(sweep)) == 64
    assert digest(sweep) != digest(SweepConfig.model_validate({**SWEEP, "samples": 4}))


def test_the_digest_does_not_move_between_versions() -> None:
    agent = AgentConfig.model_validate({"name": "empty", "adapter": "empty"})
    assert digest(agent) == "8ca5f75bf88699e6498557d20191ef8cae2e160bb6ddb51cd265bf766d6aa6a1"


def test_paths_in_a_model_have_a_digest() -> None:
    with_issues = RepositoryConfig.model_validate({**REPOSITORY, "issues": "data/issues.jsonl"})
    assert with_issues.issues == Path("data/issues.jsonl")
    assert digest(with_issues) != digest(RepositoryConfig.model_validate(REPOSITORY))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
AGENT = {"name": "a", "adapter": "codex", "model": "m", "model_version": "1", "scaffold_version": "2", "provider": "p"}
PROVIDER = {"name": "p", "base_url": "https://models.example", "forms": ["openai_chat"]}


@pytest.mark.parametrize(
    ("model", "whole"),
    [
        (RepositoryConfig, REPOSITORY),
        (AgentConfig, AGENT),
        (SweepConfig, SWEEP),
        (ProviderConfig, PROVIDER),
        (NetworkConfig, {}),
        (LakeConfig, {"url": "s3://bucket/folder"}),
    ],
)
@given(data=st.data())
def test_whatever_stands_in_a_field_is_taken_or_refused(
    model: type[ConfigModel], whole: dict[str, Any], data: st.DataObject
) -> None:
    model.model_validate(whole)
    field = data.draw(st.sampled_from(sorted(model.model_fields)))
    with suppress(ValidationError):
        assert model.model_validate({**whole, field: data.draw(_VALUES)})
