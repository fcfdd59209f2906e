"""What a test needs of the machine: it is skipped without, or fails where the machine is to have it."""

import os
from typing import NoReturn

import pytest


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail where Docker is required; `.ci/engine start` provides what is missing."""
    if os.environ.get("EVALPIPE_REQUIRE_DOCKER") == "1":
        pytest.fail(f"EVALPIPE_REQUIRE_DOCKER=1, and {reason}", pytrace=False)
    pytest.skip(reason)
