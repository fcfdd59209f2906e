"""How far tasks fall back by chance that were chosen because every sample of them passed.

Such tasks were lucky as well as easy: the next samples fail more often than none, whatever has or has not changed.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from evalpipe.stats.counts import TaskCount

PRIOR = 0.5
"""Beta(.5, .5), the spread of task rates that planning assumes too: nearly always or nearly never solved."""


def fall_back_p_value(before: Mapping[str, TaskCount], after: Mapping[str, TaskCount]) -> float:
    """Return the chance of at least as many failed samples as `after` has, when nothing has changed.

    A task with K of K samples passed has a rate of Beta(K + 1/2, 1/2) under the prior, so of m further samples
    BetaBinomial(m, 1/2, K + 1/2) fail; tasks are independent, and the sum's distribution is exact, by convolution.
    Over the tasks that both have; 1.0 without any. Raises ValueError for a task that did not pass every time before.
    """
    chance = np.ones(1)
    failed = 0
    for task in sorted(before.keys() & after.keys()):
        earlier, now = before[task], after[task]
        if earlier.passes != earlier.samples:
            raise ValueError(f"{task} did not pass every time: {earlier.passes} of {earlier.samples}")
        failures = np.arange(now.samples + 1)
        chance = np.convolve(chance, stats.betabinom.pmf(failures, now.samples, PRIOR, earlier.samples + PRIOR))
        failed += now.samples - now.passes
    return min(1.0, float(chance[failed:].sum()))
