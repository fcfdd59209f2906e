"""Where the tasks come from and how well they are validated: one line, so that no rate travels without it."""

from collections.abc import Sequence
from datetime import date

from evalpipe.reports import wording
from evalpipe.reports.records import SweepResults, TaskInfo, is_provisional

_DAYS_NAMED = 4


def provenance(results: SweepResults) -> str:
    """Return the line: tasks, repositories, days of merging, cutoffs, days of validation, provisional or not."""
    tasks = results.tasks
    if not tasks:
        return "no tasks"
    merged = sorted(task.merge_date for task in tasks)
    return "; ".join(
        [
            f"{wording.count(len(tasks), 'task')}, {_repositories(tasks)}",
            f"merged {_from_to(merged[0], merged[-1])}",
            *_cutoffs(results),
            f"validated {_days(tasks)}",
            _provisional(results),
        ]
    )


def _repositories(tasks: Sequence[TaskInfo]) -> str:
    kinds = [(word, [task for task in tasks if task.public is public]) for word, public in _KINDS]
    found = [(word, of_kind) for word, of_kind in kinds if of_kind]
    parts = []
    for word, of_kind in found:
        names = sorted({task.repository for task in of_kind})
        number = "all" if len(found) == 1 else str(len(of_kind))
        noun = f"a {word} repository" if len(names) == 1 else f"{len(names)} {word} repositories"
        parts.append(f"{number} from {noun} ({wording.listed(names)})")
    return " and ".join(parts)


_KINDS = (("private", False), ("public", True))


def _cutoffs(results: SweepResults) -> list[str]:
    """What was merged before and after each cutoff; scripted agents have no model that could have seen anything."""
    by_day: dict[date | None, list[str]] = {}
    for agent in results.contenders:
        if not agent.scripted:
            by_day.setdefault(agent.training_cutoff, []).append(agent.name)
    parts = []
    for day, names in sorted(by_day.items(), key=lambda item: item[0] or date.max):
        if day is None:
            parts.append(f"cutoff of {wording.listed(names)} not stated")
        else:
            before = sum(task.merge_date <= day for task in results.tasks)
            after = len(results.tasks) - before
            parts.append(f"{before} up to the cutoff of {wording.listed(names)} ({day.isoformat()}), {after} after it")
    return parts


def _days(tasks: Sequence[TaskInfo]) -> str:
    days = sorted({day for task in tasks for day in task.validated_on})
    if not days:
        return "on no day on record"
    if len(days) > _DAYS_NAMED:
        return f"on {len(days)} days, {_from_to(days[0], days[-1])}"
    return f"on {', '.join(day.isoformat() for day in days)}"


def _from_to(first: date, last: date) -> str:
    return f"on {first.isoformat()}" if first == last else f"{first.isoformat()} to {last.isoformat()}"


def _provisional(results: SweepResults) -> str:
    if not is_provisional(results):
        return "none provisional"
    number = sum(task.provisional for task in results.tasks)
    return f"{number} of them provisional" if 0 < number < len(results.tasks) else "all of them provisional"
