"""Tasks: the record, frozen sets, the trees of a task, prompts, and an agent's work as a patch."""

from evalpipe.tasks.capture import CapturedPatch, capture_patch
from evalpipe.tasks.files import TreeFile, read_files
from evalpipe.tasks.prompt import PromptMissing, problem_text, prompt
from evalpipe.tasks.record import (
    EnvironmentSpec,
    PathGlobs,
    Problem,
    PromptMode,
    RunnerSpec,
    Task,
    TaskSet,
)
from evalpipe.tasks.task_set import (
    LoadedTaskSet,
    TaskSetError,
    TaskWithPatches,
    freeze,
    frozen_sets,
    load_task_set,
    terse_texts,
)
from evalpipe.tasks.trees import GradedTree, PatchRefusal, PatchRefused, before_tree, graded_tree

__all__ = [
    "CapturedPatch",
    "EnvironmentSpec",
    "GradedTree",
    "LoadedTaskSet",
    "PatchRefusal",
    "PatchRefused",
    "PathGlobs",
    "Problem",
    "PromptMissing",
    "PromptMode",
    "RunnerSpec",
    "Task",
    "TaskSet",
    "TaskSetError",
    "TaskWithPatches",
    "TreeFile",
    "before_tree",
    "capture_patch",
    "freeze",
    "frozen_sets",
    "graded_tree",
    "load_task_set",
    "problem_text",
    "prompt",
    "read_files",
    "terse_texts",
]
