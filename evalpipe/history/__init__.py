"""Reads git: repositories and their objects, the mainline, and what makes a change a candidate for a task."""

from evalpipe.history.candidates import Candidate, MiningRules, funnel, mine
from evalpipe.history.decision import MiningReason
from evalpipe.history.errors import HistoryError, PatchDoesNotApply, TreeNotWritten
from evalpipe.history.issues import IssueTexts
from evalpipe.history.objects import ObjectReader, Tree, TreeEntry
from evalpipe.history.paths import FileKind, PathRules, steers_tests
from evalpipe.history.repository import Repository, update_mirror
from evalpipe.history.safe_paths import check_patch_result
from evalpipe.history.scratch import ScratchObjects

__all__ = [
    "Candidate",
    "FileKind",
    "HistoryError",
    "IssueTexts",
    "MiningReason",
    "MiningRules",
    "ObjectReader",
    "PatchDoesNotApply",
    "PathRules",
    "Repository",
    "ScratchObjects",
    "Tree",
    "TreeEntry",
    "TreeNotWritten",
    "check_patch_result",
    "funnel",
    "mine",
    "steers_tests",
    "update_mirror",
]
