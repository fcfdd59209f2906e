"""The release that a commit descends from: what `git describe` would tell a build backend, of versions alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.history.releases import release_before, version_in
from evalpipe.history.repository import Repository, update_mirror
from evalpipe_tests.history.builder import Builder, git


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("1.2", "1.2"),
        ("v1.2.3", "1.2.3"),
        ("V2.0", "2.0"),
        ("v1.2.3rc1", "1.2.3rc1"),
        ("1.2.3-beta.2", "1.2.3-beta.2"),
        ("1.0.0.dev3", "1.0.0.dev3"),
        ("2023.10.01", "2023.10.01"),
        ("shop-1.2.0", "1.2.0"),
        ("shop/v1.2.0", "1.2.0"),
        ("@team/shop@3.1.4", "3.1.4"),
        ("release_1.4", "1.4"),
        ("5.0.0.Final", "5.0.0.Final"),
        ("1.2.x", None),
        ("v3", None),
        ("nightly", None),
        ("before-1.2-cleanup", None),
        ("", None),
    ],
)
def test_version_in_the_name_of_a_tag(tag: str, version: str | None) -> None:
    assert version_in(tag) == version


def test_nearest_tag_of_the_ancestry_that_reads_as_a_version(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    start = builder.commit({b"a": b"1"})
    first = builder.commit({b"a": b"2"})
    side = builder.commit({b"b": b"1"}, parents=[start], branch="side")
    second = builder.commit({b"a": b"3"})
    last = builder.commit({b"a": b"4"})
    git(builder.path, "tag", "v1.0", first)
    # Newer than what they are passed over for: one of another line, one that is no version, one after the commit.
    git(builder.path, "tag", "v1.0.1", side)
    git(builder.path, "tag", "before-1.1-cleanup", second)
    git(builder.path, "-c", "user.name=A", "-c", "user.email=a@b", "tag", "-a", "-m", "two", "v2.0", last)

    mirror = update_mirror(str(builder.path), tmp_path / "mirror.git")
    assert release_before(mirror, start) is None
    assert release_before(mirror, first) == "1.0"
    assert release_before(mirror, second) == "1.0"
    assert release_before(mirror, last) == "2.0"
    assert release_before(mirror, side) == "1.0.1"


def test_mirror_follows_tags_that_are_set_later(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git")
    commit = builder.commit({b"a": b"1"})
    update_mirror(str(builder.path), tmp_path / "mirror.git")
    git(builder.path, "tag", "v1.0", commit)
    # Of no branch: nothing that was mined descends from it, so the mirror does without.
    git(builder.path, "tag", "v9.0", builder.commit({b"x": b"1"}, parents=[], branch=None))
    mirror = update_mirror(str(builder.path), tmp_path / "mirror.git")
    assert release_before(mirror, commit) == "1.0"
    assert git(tmp_path / "mirror.git", "tag").split() == [b"v1.0"]


def test_release_of_a_repository_with_long_object_ids(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "source.git", object_format="sha256")
    commit = builder.commit({b"a": b"1"})
    git(builder.path, "tag", "1.0", commit)
    assert release_before(Repository(builder.path), commit) == "1.0"
