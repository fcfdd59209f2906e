"""One row of the table of hard cases for each runner."""

from __future__ import annotations

from evalpipe_tests.conformance.hard_cases import Row
from evalpipe_tests.conformance.rows import of_pytest

ROWS: tuple[Row, ...] = (of_pytest.ROW,)
