"""Reads git: repositories and their objects, the mainline, and what makes a change a candidate for a task."""

from evalpipe.history.candidates import Candidate, MiningRules, funnel
from evalpipe.history.decision import Category, MiningReason
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
from evalpipe.history.pull_requests import Forge, PullRequest
from evalpipe.history.repository import Repository, update_mirror
from evalpipe.history.safe_paths import check_patch_result
from evalpipe.history.scratch import ScratchObjects, remove_abandoned_scratch

__all__ = [
    "MINING_VERSION",
    "Candidate",
    "Category",
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
    "PatchDoesNotApply",
    "PathRules",
    "PullRequest",
    "Repository",
    "ScratchObjects",
    "Tree",
    "TreeEntry",
    "TreeNotWritten",
    "check_patch_result",
    "distinctive_lines",
    "funnel",
    "prove_repository",
    "remove_abandoned_scratch",
    "steers_tests",
    "update_mirror",
]
