import copy
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from evalpipe.manifest import ManifestError, manifest_bytes, schema, validate_manifest
from evalpipe_tests.manifest.examples import PROCESS, example


def _fields(document: dict[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in document.items():
        yield (*prefix, key)
        if isinstance(value, dict) and key != "images":
            yield from _fields(value, (*prefix, key))


def _changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(example().to_json())
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def _problems(document: object) -> tuple[str, ...]:
    with pytest.raises(ManifestError) as caught:
        validate_manifest(document)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def test_the_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_field_is_described() -> None:
    def undescribed(node: dict[str, Any], path: str) -> Iterator[str]:
        for name, field in node.get("properties", {}).items():
            if "description" not in field:
                yield f"{path}.{name}"
            yield from undescribed(field, f"{path}.{name}")

    assert list(undescribed(schema(), "$")) == []


ADDED = {("environment", "history")}
"""Fields that the first manifests do not have."""


@pytest.mark.parametrize("path", [path for path in _fields(example().to_json()) if path not in ADDED], ids=".".join)
def test_every_field_is_required(path: tuple[str, ...]) -> None:
    document = copy.deepcopy(example().to_json())
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    parent = ".".join(("$", *path[:-1]))
    assert f"{parent}: {path[-1]!r} is a required property" in _problems(document)


@pytest.mark.parametrize("parent", [(), ("agent",), ("task_set",), ("environment",), ("agent", "retry_policy")])
def test_no_other_field_is_allowed(parent: tuple[str, ...]) -> None:
    assert "'colour' was unexpected" in _problems(_changed((*parent, "colour"), 1))[0]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("created_at",), "yesterday"),
        (("created_at",), "2026-11-29T12:00:00"),
        (("created_at",), "2026-11-29"),
        (("schema_version",), 2),
        (("run_id",), ""),
        (("samples_per_task",), 0),
        (("samples_per_task",), True),
        (("task_set", "prompt_mode"), "long"),
        (("task_set", "task_count"), 9),
        (("agent", "temperature"), -1),
        (("agent", "tools"), ["a", "a"]),
        (("agent", "max_turns"), 0),
        (("environment", "image_digest"), "sha256:" + "c" * 64),
        (("environment", "images"), {}),
        (("environment", "images"), {"latest": 10}),
        (("environment", "network"), "some"),
        (("environment", "engine_version"), None),
        (("environment", "memory_limit"), "4g"),
        (("environment", "task_timeout_s"), 0),
        (("priced",), True),
        (("region",), "eu"),
        (("currency",), "EUR"),
    ],
)
def test_a_wrong_value_is_refused(path: tuple[str, ...], value: Any) -> None:
    _problems(_changed(path, value))


def test_every_problem_is_listed_with_its_path() -> None:
    document = _changed(("agent", "max_turns"), 0)
    document["samples_per_task"] = "3"
    assert _problems(document) == (
        "$.agent.max_turns: 0 is less than the minimum of 1",
        "$.samples_per_task: '3' is not of type 'integer'",
    )


def test_what_numbers_contradict_is_said() -> None:
    assert _problems(_changed(("task_set", "task_count"), 9)) == (
        "$.environment.images: the counts add up to 10, but there are 9 tasks",
    )


@pytest.mark.parametrize("document", [None, [], "text", 1, {}])
def test_what_is_no_manifest_is_refused(document: object) -> None:
    _problems(document)


def test_the_process_sandbox_has_no_engine() -> None:
    document = example(environment=PROCESS).to_json()
    document["environment"]["engine_version"] = "28"
    assert _problems(document) == ("$.environment.engine_version: '28' is not of type 'null'",)


def test_prices_need_region_and_currency() -> None:
    validate_manifest(example(region="eu", currency="EUR").to_json())
    with pytest.raises(ManifestError, match="'region' is a required property"):
        example(priced=True)
    with pytest.raises(ManifestError, match="currency"):
        example(region="eu")


def test_an_invalid_document_gets_no_bytes() -> None:
    with pytest.raises(ManifestError):
        manifest_bytes(_changed(("samples_per_task",), 0))
