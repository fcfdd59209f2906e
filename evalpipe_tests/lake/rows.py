"""Rows of any declared table, by hand and by hypothesis, from the schema alone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_TIMES = st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC))


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of an Arrow type, as Python gives them back."""
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({kind.field(n).name: values(kind.field(n).type) for n in range(kind.num_fields)})
    simple: dict[pa.DataType, st.SearchStrategy[Any]] = {
        pa.string(): _TEXT,
        pa.binary(): st.binary(max_size=20),
        pa.bool_(): st.booleans(),
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.float64(): st.floats(allow_nan=False),
        pa.timestamp("us", tz="UTC"): _TIMES,
    }
    return simple[kind]


def rows(schema: pa.Schema) -> st.SearchStrategy[dict[str, Any]]:
    """Rows of a schema; optional columns are null at times."""
    return st.fixed_dictionaries(
        {
            column.name: values(column.type) if not column.nullable else st.none() | values(column.type)
            for column in schema
        }
    )


def verdict(key: str, *, detail: str = "") -> dict[str, Any]:
    """A row of `verdicts`."""
    return {
        "verdict_key": key,
        "verdict": "fail_to_pass_failed",
        "resolved": False,
        "integrity": "clean",
        "integrity_reasons": [],
        "fail_to_pass_passed": 0,
        "fail_to_pass_total": 1,
        "pass_to_pass_passed": 3,
        "pass_to_pass_total": 3,
        "unmet_tests": [
            {"test_id": "t.py::t[é \n]", "expected_in": "fail_to_pass", "outcome": "missing", "message": ""}
        ],
        "detail": detail,
        "ignored_paths": [b"caf\xe9.py"],
        "grading_seconds": 0.25,
        "graded_at": dt.datetime(2026, 10, 1, 12, 30, 0, 123456, tzinfo=dt.UTC),
        "style_clean": False,
        "style_output": "clock.py:1: E731",
    }
