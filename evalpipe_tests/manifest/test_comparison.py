import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.manifest import (
    MISSING,
    Difference,
    configuration_digest,
    describe_differences,
    differences,
)
from evalpipe_tests.manifest.examples import AGENT, ENVIRONMENT, example

_KEYS = st.sampled_from(["a", "b", "run_id", "created_at", "a.b", "sha256:00", ""])
_LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3, width=16) | st.text(max_size=3)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3), max_leaves=8
)
DOCUMENTS = st.dictionaries(_KEYS, _VALUES, max_size=5)


@given(DOCUMENTS)
def test_a_document_does_not_differ_from_itself(document: dict[str, Any]) -> None:
    assert differences(document, copy.deepcopy(document)) == []


@given(DOCUMENTS, DOCUMENTS)
def test_both_directions_find_the_same_fields(left: dict[str, Any], right: dict[str, Any]) -> None:
    found, turned = differences(left, right), differences(right, left)
    assert [(each.path, each.left, each.right) for each in found] == [
        (each.path, each.right, each.left) for each in turned
    ]
    assert len({each.path for each in found}) == len(found)


@given(DOCUMENTS, DOCUMENTS)
def test_digests_are_equal_exactly_when_nothing_differs(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert (configuration_digest(left) == configuration_digest(right)) == (differences(left, right) == [])


@given(st.permutations(list(example().to_json().items())), st.text(min_size=1), st.datetimes())
def test_the_digest_ignores_order_and_the_run(items: list[tuple[str, Any]], run_id: str, moment: datetime) -> None:
    other = {**dict(items), "run_id": run_id, "created_at": moment.isoformat()}
    assert configuration_digest(other) == configuration_digest(example().to_json())


def _leaf_paths(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in _leaf_paths(inner, (*path, key))]
    return [path]


@pytest.mark.parametrize(
    "path", [path for path in _leaf_paths(example().to_json()) if path not in {("run_id",), ("created_at",)}]
)
def test_any_other_field_changes_the_digest_and_is_the_one_difference(path: tuple[str, ...]) -> None:
    document = example().to_json()
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "something else"
    assert configuration_digest(changed) != configuration_digest(document)
    assert len(differences(document, changed)) == 1


def test_the_digest_does_not_move_between_versions() -> None:
    manifest = example().to_json()
    assert configuration_digest(manifest) == "665339c48a009c9beb3ee15fcc3050b83a045a1f3ad38611f515fa45d4f30a1c"
    # One of the first manifests, which did not say what an agent could read of the past.
    del manifest["environment"]["history"]
    assert configuration_digest(manifest) == "a0ce0cd83e91030fcc4b7abdbd2aa76c8587df23cbe680689db806e9e8afc01c"


def test_two_runs_of_one_configuration_do_not_differ() -> None:
    later = example(run_id="run-2", created_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert differences(example().to_json(), later.to_json()) == []
    every = differences(example().to_json(), later.to_json(), ignore=())
    assert [each.path for each in every] == ["created_at", "run_id"]


def test_fields_are_compared_inside_objects_and_lists_as_wholes() -> None:
    other = example(
        agent=replace(AGENT, tools=("edit",), temperature=None),
        environment=replace(ENVIRONMENT, cpu_limit=4),
        priced=True,
        region="eu",
        currency="EUR",
    )
    found = differences(example().to_json(), other.to_json())
    assert found == [
        Difference("agent.temperature", 0.5, None),
        Difference("agent.tools", ["edit", "shell"], ["edit"]),
        Difference("currency", MISSING, "EUR"),
        Difference("environment.cpu_limit", 2.0, 4),
        Difference("priced", False, True),
        Difference("region", MISSING, "eu"),
    ]
    assert describe_differences(found, "steady", "broad") == [
        "agent.temperature: 0.5 (steady), null (broad)",
        'agent.tools: ["edit","shell"] (steady), ["edit"] (broad)',
        'currency: not there (steady), "EUR" (broad)',
        "environment.cpu_limit: 2 (steady), 4 (broad)",
        "priced: false (steady), true (broad)",
        'region: not there (steady), "eu" (broad)',
    ]


def test_a_path_can_be_ignored_with_all_below_it() -> None:
    other = example(agent=replace(AGENT, model="x", max_attempts=1)).to_json()
    found = differences(example().to_json(), other, ignore=("run_id", "created_at", "agent.retry_policy"))
    assert [each.path for each in found] == ["agent.model"]
    assert differences(example().to_json(), other, ignore=("agent",)) == []


@pytest.mark.parametrize(("left", "right"), [(1, True), (0, False), (None, False), ("1", 1), ([], {}), ({}, None)])
def test_values_of_another_type_differ(left: object, right: object) -> None:
    assert differences({"a": left}, {"a": right}) == [Difference("a", left, right)]


def test_null_and_missing_are_not_the_same() -> None:
    assert differences({"a": None}, {}) == [Difference("a", None, MISSING)]


def test_keys_that_are_no_words_are_quoted_in_the_path() -> None:
    assert differences({"a": {"b.c": 1}}, {"a": {"b.c": 2}})[0].path == 'a["b.c"]'
