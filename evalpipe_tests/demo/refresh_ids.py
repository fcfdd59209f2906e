"""Writes the commit ids of the built demo repository into data/demo/expected.json.

For use after an edit of data/demo (python -m evalpipe_tests.demo.refresh_ids): a commit's id depends on everything
before it. Classes and test ids are not touched: they are a person's statement of what must come out.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from evalpipe.demo.build import build_demo_repository
from evalpipe_tests.demo.expectations import DEMO, expected_changes, expected_tip
from evalpipe_tests.demo.trees import git


def refreshed(repository: Path) -> str:
    """The text of expected.json with the ids of a repository. The changes must have the same subjects, in order."""
    lines = git(repository, "log", "--first-parent", "--reverse", "--format=%H %s").decode().splitlines()
    actual = [line.split(" ", 1) for line in lines]
    known = [commit for change in expected_changes() for commit in change.commits]
    if len(known) != len(actual):
        raise SystemExit(f"expected.json lists {len(known)} mainline commits, the repository has {len(actual)}")
    text = (DEMO / "expected.json").read_text(encoding="utf-8")
    by_commit = dict(zip(known, actual, strict=True))
    for change in expected_changes():
        commit, subject = by_commit[change.commit]
        if subject != change.subject:
            raise SystemExit(f"expected.json has {change.subject!r} where the repository has {subject!r} ({commit})")
    text = text.replace(f'"tip": "{expected_tip()}"', f'"tip": "{actual[-1][0]}"')
    for old, (new, _) in by_commit.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return text


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "demo"
        build_demo_repository(DEMO, repository)
        (DEMO / "expected.json").write_text(refreshed(repository), encoding="utf-8")


if __name__ == "__main__":
    main()
