"""The text that an agent gets."""

import re

from evalpipe.tasks.record import PromptMode, Task

_TRAILER = re.compile(
    r"^(?:co-authored-by|signed-off-by|reviewed-by|reviewed-on|acked-by|tested-by|change-id|"
    r"differential revision|cherry[ -]picked from|generated (?:with|by))\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_HEX = re.compile(r"\b[0-9a-f]{7,64}\b", re.IGNORECASE)


class PromptMissing(Exception):
    """A task has no text in the mode that a sweep asks for."""


def problem_text(text: str, commit: str) -> str:
    """`text` without trailers and without ids of the reference change, which would name the answer."""
    without_trailers = _TRAILER.sub("", text)
    cleaned = _HEX.sub(lambda found: "(commit)" if commit.startswith(found[0].lower()) else found[0], without_trailers)
    return cleaned.strip() + "\n"


def prompt(task: Task, mode: PromptMode, test_command: str) -> str:
    """The prompt of `task` in `mode`. Raises PromptMissing when the set holds no text for that mode."""
    text = task.problem.original if mode is PromptMode.ORIGINAL else task.problem.terse
    if text is None:
        raise PromptMissing(
            f"task {task.task_id} has no {mode} text: write one in the task set's folder terse/{task.task_id}.md "
            f"before freezing, or take `{mode}` out of the sweep's modes"
        )
    return (
        f"{text.rstrip()}\n\n"
        "Change the code in the current directory so that this is done. "
        f"The tests run with `{test_command}`. There is no network. Do not wait for an answer.\n"
    )
