"""Data sets with known answers (computed once with scipy and statsmodels), shared by the tests here."""

from evalpipe.stats.counts import TaskCount


def of_four(*tasks_with_passes: int) -> list[TaskCount]:
    """Tasks of four samples each: so many with 0 passes, so many with 1, ..., so many with 4."""
    return [TaskCount(passes, 4) for passes, tasks in enumerate(tasks_with_passes) for _ in range(tasks)]


def passes_of_four(passes: list[int]) -> dict[str, TaskCount]:
    return {f"task-{index:02}": TaskCount(count, 4) for index, count in enumerate(passes)}


SET_A = of_four(3, 3, 2, 3, 7)
SPEC_LIKE = of_four(1, 4, 6, 0, 7)
SET_B = of_four(0, 0, 0, 0, 18)
SET_C = of_four(18, 0, 0, 0, 0)
SET_D = [TaskCount(passes, 4) for passes in (4, 4, 3, 0, 1)]
SET_E = of_four(9, 6, 5, 8, 17)
SET_F = of_four(0, 0, 0, 1, 17)
SET_G = [TaskCount(passes, samples) for passes, samples in zip((4, 3, 0, 2, 3), (4, 4, 3, 4, 3), strict=True)]

AGENT_A = passes_of_four([4, 4, 3, 0, 1, 2, 4, 0, 0, 3, 4, 2, 1, 0, 4, 3, 2, 0])
AGENT_B = passes_of_four([4, 4, 4, 1, 2, 2, 4, 0, 1, 4, 4, 4, 1, 0, 4, 4, 3, 1])
PAIR = (AGENT_A, AGENT_B)
TERSE_A = passes_of_four([4, 3, 3, 0, 0, 1, 4, 0, 0, 2, 4, 1, 0, 0, 3, 3, 1, 0])
TERSE_B = passes_of_four([4, 4, 4, 1, 2, 2, 4, 0, 1, 3, 4, 4, 1, 0, 4, 4, 3, 1])
