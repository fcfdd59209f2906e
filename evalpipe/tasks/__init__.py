"""Tasks: the record, frozen sets, the trees of a task, prompts, and an agent's work as a patch."""

from evalpipe.tasks.added_change import AddedChange, AddedChangeWrong, added_change
from evalpipe.tasks.capture import CapturedPatch, capture_patch
from evalpipe.tasks.criteria import Criterion, Decision, Decisions, criteria_path, decisions_of, with_proposals
from evalpipe.tasks.files import TreeFile, read_files
from evalpipe.tasks.frozen_set import (
    LoadedTaskSet,
    SetProblem,
    SetProblemKind,
    TaskSetError,
    frozen_sets,
    inspect_task_set,
    load_task_set,
    surplus_files,
)
from evalpipe.tasks.hidden_tests import find_hidden_tests, hidden_paths
from evalpipe.tasks.prompt import PromptMissing, names_not_in, problem_text, prompt
from evalpipe.tasks.record import (
    EnvironmentSpec,
    PathGlobs,
    Problem,
    PromptFinding,
    PromptMode,
    RunnerSpec,
    Task,
    TaskSet,
)
from evalpipe.tasks.sampling import SampleTooLarge, Sampling
from evalpipe.tasks.task_checks import task_problems, tree_problem
from evalpipe.tasks.task_set import TaskWithPatches, freeze, terse_path, terse_texts
from evalpipe.tasks.terse_draft import terse_draft
from evalpipe.tasks.trees import (
    PATCH_BYTES,
    GradedTree,
    PatchRefusal,
    PatchRefused,
    before_tree,
    graded_tree,
    instance_tree,
)

__all__ = [
    "PATCH_BYTES",
    "AddedChange",
    "AddedChangeWrong",
    "CapturedPatch",
    "Criterion",
    "Decision",
    "Decisions",
    "EnvironmentSpec",
    "GradedTree",
    "LoadedTaskSet",
    "PatchRefusal",
    "PatchRefused",
    "PathGlobs",
    "Problem",
    "PromptFinding",
    "PromptMissing",
    "PromptMode",
    "RunnerSpec",
    "SampleTooLarge",
    "Sampling",
    "SetProblem",
    "SetProblemKind",
    "Task",
    "TaskSet",
    "TaskSetError",
    "TaskWithPatches",
    "TreeFile",
    "added_change",
    "before_tree",
    "capture_patch",
    "criteria_path",
    "decisions_of",
    "find_hidden_tests",
    "freeze",
    "frozen_sets",
    "graded_tree",
    "hidden_paths",
    "inspect_task_set",
    "instance_tree",
    "load_task_set",
    "names_not_in",
    "problem_text",
    "prompt",
    "read_files",
    "surplus_files",
    "task_problems",
    "terse_draft",
    "terse_path",
    "terse_texts",
    "tree_problem",
    "with_proposals",
]
