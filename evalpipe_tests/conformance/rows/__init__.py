"""One row of the table of hard cases for each runner."""

from __future__ import annotations

from evalpipe_tests.conformance.hard_cases import Row
from evalpipe_tests.conformance.rows import (
    of_cargo,
    of_generic,
    of_generic_files,
    of_go,
    of_gradle,
    of_jest,
    of_maven,
    of_mocha,
    of_nextest,
    of_node,
    of_pytest,
    of_unittest,
    of_vitest,
)

ROWS: tuple[Row, ...] = (
    of_pytest.ROW,
    of_unittest.ROW,
    of_generic.ROW,
    of_generic_files.OF_JUNIT,
    of_generic_files.OF_CTRF,
    of_jest.ROW,
    of_vitest.ROW,
    of_mocha.ROW,
    of_node.ROW,
    of_go.ROW,
    of_cargo.ROW,
    of_nextest.ROW,
    of_maven.ROW,
    of_gradle.ROW,
)
