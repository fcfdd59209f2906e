"""Stage `candidate_commits`: every mainline change of a repository, kept or rejected with its reason."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evalpipe.config import RepositoryConfig
from evalpipe.history import Candidate, IssueTexts, MiningReason, MiningRules, PathRules, funnel, mine, update_mirror
from evalpipe.stages.bench import Workbench
from evalpipe.validation import ValidationClass


def mine_repository(bench: Workbench, config: RepositoryConfig) -> list[Candidate]:
    """Look at every change of a repository's mainline and write one row for each. Raises HistoryError."""
    candidates = look_at_history(bench, config)
    mirror = bench.mirror(config.name)
    mirror.keep(
        commit
        for item in candidates
        if item.reason is MiningReason.kept
        for commit in (item.commit, item.parent)
        if commit
    )
    bench.lake.write("candidate_commits", [_row(item) for item in candidates], config.name)
    return candidates


def look_at_history(bench: Workbench, config: RepositoryConfig) -> list[Candidate]:
    """The same look without a row written, for `evalpipe mine --dry-run`. Raises HistoryError."""
    source = bench.workspace.repository_location(config)
    mirror = update_mirror(source, bench.mirror_path(config.name))
    mainline, tip = mirror.mainline_tip(config.mainline)
    texts = IssueTexts.load(bench.workspace.resolve(config.issues)) if config.issues else None
    rules = MiningRules(
        repository=config.name,
        mainline=mainline,
        test_globs=config.paths.tests,
        source_globs=config.paths.source,
        generated_globs=config.paths.generated,
        max_files=config.max_files,
        require_issue=config.require_issue,
    )
    return list(mine(mirror, tip, rules, texts))


def path_rules(config: RepositoryConfig) -> PathRules:
    """The rules by which a repository's files are told apart."""
    paths = config.paths
    return PathRules(paths.tests, paths.source, paths.generated)


def mining_funnel(candidates: Sequence[Candidate]) -> list[tuple[str, int]]:
    """How many changes were kept, and how many fell to each reason, in the order of the rules."""
    return [(reason.value, count) for reason, count in funnel(candidates)]


def stored_mining_funnel(bench: Workbench, repositories: Sequence[str]) -> list[tuple[str, int]]:
    """The funnel of what was mined before, over several repositories."""
    counts = Counter(row["reason"] for name in repositories for row in bench.lake.rows("candidate_commits", name))
    return [(reason.value, counts[reason.value]) for reason in MiningReason if counts[reason.value]]


def stored_validation_funnel(bench: Workbench, repositories: Sequence[str]) -> list[tuple[str, int]]:
    """How many kept candidates have each validation class, in the order of the classes."""
    counts = Counter(
        row["validation_class"] for name in repositories for row in bench.lake.rows("validated_tasks", name)
    )
    return [(found.value, counts[found.value]) for found in ValidationClass if counts[found.value]]


def _row(candidate: Candidate) -> dict[str, Any]:
    return {
        "candidate_id": candidate.candidate_id,
        "repository": candidate.repository,
        "commit": candidate.commit,
        "parent": candidate.parent,
        "tree": candidate.tree,
        "shape": candidate.shape.value,
        "number": candidate.number,
        "subject": candidate.subject,
        "author": candidate.author,
        "author_date": candidate.author_date,
        "merge_date": candidate.merge_date,
        "reason": candidate.reason.value,
        "reason_detail": candidate.reason_detail,
        "source_files": list(candidate.source_files),
        "test_files": list(candidate.test_files),
        "files_changed": candidate.files_changed,
        "lines_added": candidate.lines_added,
        "lines_removed": candidate.lines_removed,
        "category": candidate.category.value,
        "category_rule": candidate.category_rule,
        "issues": [
            {"key": link.key, "found_in": link.found_in.value, "strength": link.strength.value}
            for link in candidate.issues
        ],
        "problem_source": candidate.problem_source.value,
        "problem_text": candidate.problem_text,
        "reverts": candidate.reverts,
        "coding_agent": candidate.coding_agent,
    }
