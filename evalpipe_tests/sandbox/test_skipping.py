"""The suite without Docker: skipped tests are counted in the last line, and are failures where Docker is
required.
"""

import os
import subprocess
import sys

import pytest

TEST = f"{__file__.removesuffix('test_skipping.py')}test_docker.py::test_a_program_made_in_tmp_runs"


def run_suite(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TEST],
        env=os.environ | {"DOCKER_HOST": "unix:///nowhere/docker.sock"} | env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_last_line_counts_what_was_skipped() -> None:
    done = run_suite(EVALPIPE_REQUIRE_DOCKER="0")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("1 Docker tests skipped: no Docker engine answers")


@pytest.mark.slow
def test_where_docker_is_required_a_missing_engine_fails() -> None:
    done = run_suite(EVALPIPE_REQUIRE_DOCKER="1")
    assert done.returncode == 1
    assert "no Docker engine answers" in done.stdout
