import subprocess
from pathlib import Path

import pytest

from evalpipe.environments.recipe import PACKAGES_FILE
from evalpipe.environments.templates.released_copies import newer_copies_script


def _check(
    folder: Path, packages: str, versions: dict[str, str], release: str | None
) -> subprocess.CompletedProcess[str]:
    listing = folder / "packages.txt"
    listing.write_text(packages)
    script = newer_copies_script(versions, release).replace(PACKAGES_FILE, str(listing))
    return subprocess.run(["/bin/sh", "-ec", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("copy", "version", "release", "newer"),
    [
        ("1.2.0", "1.2.0", None, False),
        ("1.1.9", "1.2.0", None, False),
        ("1.10.0", "1.9.0", None, True),
        ("1.2.1", "1.2.0", None, True),
        ("1.2.1", "1.2.0", "1.2.1", False),
        ("1.2.0", "1.2.0-SNAPSHOT", None, True),
        ("1.2.0", "1.2.0-beta.1", "1.1.0", True),
        ("1.2.0-beta.1", "1.2.0", None, False),
        ("10.1.0", "0.0.0-development", "10.1.1", False),
        ("10.2.0", "0.0.0-development", "10.1.1", True),
        ("1.0", "", None, True),
    ],
)
def test_a_copy_may_not_be_newer_than_the_base(
    tmp_path: Path, copy: str, version: str, release: str | None, newer: bool
) -> None:
    packages = f"other==99.0\nshop-core=={copy}\n"
    done = _check(tmp_path, packages, {"shop-core": version, "it's": "1"}, release)
    assert done.returncode == int(newer), done.stderr
    assert (f"shop-core {copy}" in done.stdout) == newer


def test_a_project_without_packages_of_its_own_needs_no_check() -> None:
    assert newer_copies_script({}, "1.0") == ""
