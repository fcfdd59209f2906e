"""What single tasks say of all agents, as cautions: solved always, solved never, solved by the wrong ones."""

from collections import Counter
from collections.abc import Mapping

from evalpipe.reports import wording
from evalpipe.reports.findings import Caution, Finding
from evalpipe.reports.records import SweepResults
from evalpipe.reports.samples import Samples
from evalpipe.stats.discrimination import TaskDiscrimination, TaskSignal, discriminate
from evalpipe.stats.multiple import LEVEL

_WHAT = {
    TaskSignal.SATURATED: (Caution.SATURATED_TASKS, "solved in every graded sample, which ranks nobody"),
    TaskSignal.DEAD: (
        Caution.DEAD_TASKS,
        "never solved, and may be at fault: validate again, and look whether the tests ask for more than the prompt",
    ),
}


def task_signals(results: SweepResults, samples: Samples) -> dict[str, TaskDiscrimination]:
    """Return how each task tells the contenders apart; prompt modes are agents of their own here."""
    keys = [(agent.name, mode) for agent in results.contenders for mode in results.modes]
    return discriminate([samples.tallies[key].counts for key in keys])


def what_tells_apart(signals: Mapping[str, TaskDiscrimination]) -> str:
    """Return in a sentence how many tasks carry the result, and which of them most; empty without a graded task."""
    if not signals:
        return ""
    numbers = Counter(one.signal for one in signals.values())
    apart = sorted((task for task, one in signals.items() if one.spread), key=lambda task: -signals[task].spread)
    some = numbers[TaskSignal.INFORMATIVE]
    share = f"{some} of {wording.count(len(signals), 'task')} {'was' if some == 1 else 'were'}"
    widest = f"; agents differ most on {wording.listed(apart)}" if apart else ""
    return f"{share} solved in some samples and not in others{widest}."


def signal_cautions(signals: Mapping[str, TaskDiscrimination]) -> list[Finding]:
    """Return which tasks rank nobody, and which are suspect."""
    found = []
    for signal, (reason, text) in _WHAT.items():
        tasks = [task for task, one in signals.items() if one.signal is signal]
        if tasks:
            verb = "was" if len(tasks) == 1 else "were"
            share = f"{len(tasks)} of {wording.count(len(signals), 'task')} {verb}"
            found.append(Finding(reason, f"{share} {text} ({wording.listed(tasks)})"))
    # Every second task of agents that are alike has a correlation below zero.
    level = LEVEL / max(1, len(signals))
    suspect = [task for task, one in signals.items() if one.suspect_p is not None and one.suspect_p <= level]
    if suspect:
        text = f"to be looked at, because agents that solve less of the rest solve them more: {wording.listed(suspect)}"
        found.append(Finding(Caution.SUSPECT_TASKS, text))
    return found
