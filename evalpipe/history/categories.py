"""What kind of work a change was: by rule, or because the team said so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evalpipe.history.decision import Category, CategoryRule, ChangedFiles
from evalpipe.history.paths import FileKind
from evalpipe.history.shapes import Change


def categorize(files: ChangedFiles, dependencies_changed: bool) -> tuple[Category, CategoryRule]:
    """What kind of work a change was, and the rule that says so."""
    sources = len(files.by_kind.get(FileKind.source, ()))
    if dependencies_changed and sources <= 1:
        return Category.dependency_chore, CategoryRule.dependency_and_at_most_one_source_file
    if sources == 1:
        return Category.single_file_repair, CategoryRule.one_source_file
    if sources > 1:
        return Category.multi_file_feature, CategoryRule.several_source_files
    if FileKind.test in files.by_kind:
        return Category.test_only, CategoryRule.tests_without_source
    return Category.other, CategoryRule.no_source


class Overrides:
    """The team's own categories, by candidate id, pull request (`#12`) or commit (seven digits or more)."""

    def __init__(self, categories: Mapping[str, Category]) -> None:
        self._by_name = categories
        self._by_commit = {key: category for key, category in categories.items() if _COMMIT.fullmatch(key)}

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def applied(
        self, candidate_id: str, change: Change, category: Category, rule: CategoryRule
    ) -> tuple[Category, CategoryRule]:
        """The category of a change and its rule: the team's, or those given."""
        names = self.names_of(candidate_id, change.number, [commit.commit for commit in change.commits])
        return (self._by_name[names[0]], CategoryRule.override) if names else (category, rule)

    def names_of(self, candidate_id: str, number: int | None, commits: Sequence[str]) -> list[str]:
        """The team's names that mean this change, in the order in which they count; `commits` are the mainline's."""
        names = [name for name in (candidate_id, f"#{number}") if name in self._by_name]
        return names + [name for name in self._by_commit if any(commit.startswith(name) for commit in commits)]


_COMMIT = re.compile("[0-9a-f]{7,64}")
