"""Reads git: repositories and their objects, the mainline, and what makes a change a candidate for a task."""

from evalpipe.history.added_commits import add_commit, commit_day
from evalpipe.history.candidates import Candidate, MiningRules, candidate_id, funnel
from evalpipe.history.categories import Overrides
from evalpipe.history.decision import Category, CategoryRule, MiningReason
from evalpipe.history.errors import (
    CommitMissing,
    HistoryError,
    MainlineRewritten,
    PatchDoesNotApply,
    TreeNotWritten,
)
from evalpipe.history.instance_proof import InstanceFault, InstanceFinding, distinctive_lines, prove_repository
from evalpipe.history.issues import IssueTexts
from evalpipe.history.ledger import Entry
from evalpipe.history.mining import MINING_VERSION, Earlier, Mining
from evalpipe.history.objects import ObjectReader, Tree, TreeEntry
from evalpipe.history.paths import FileKind, PathRules, steers_tests
from evalpipe.history.problem import ProblemSource
from evalpipe.history.pull_requests import Forge, PullRequest
from evalpipe.history.repository import Repository, source_tip, update_mirror
from evalpipe.history.safe_paths import check_patch_result
from evalpipe.history.scratch import ScratchObjects, remove_abandoned_scratch
from evalpipe.history.shapes import Shape

__all__ = [
    "MINING_VERSION",
    "Candidate",
    "Category",
    "CategoryRule",
    "CommitMissing",
    "Earlier",
    "Entry",
    "FileKind",
    "Forge",
    "HistoryError",
    "InstanceFault",
    "InstanceFinding",
    "IssueTexts",
    "MainlineRewritten",
    "Mining",
    "MiningReason",
    "MiningRules",
    "ObjectReader",
    "Overrides",
    "PatchDoesNotApply",
    "PathRules",
    "ProblemSource",
    "PullRequest",
    "Repository",
    "ScratchObjects",
    "Shape",
    "Tree",
    "TreeEntry",
    "TreeNotWritten",
    "add_commit",
    "candidate_id",
    "check_patch_result",
    "commit_day",
    "distinctive_lines",
    "funnel",
    "prove_repository",
    "remove_abandoned_scratch",
    "source_tip",
    "steers_tests",
    "update_mirror",
]
