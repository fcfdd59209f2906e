"""Several comparisons at once: Holm's step-down adjustment."""

from collections.abc import Sequence

# Of every family of tests: the chance that any of them errs.
LEVEL = 0.05


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm-adjusted p values in the order given (family-wise error, any dependence).

    Source: Holm 1979. The family must have been fixed before the data were seen; that is the caller's part.
    """
    count = len(p_values)
    adjusted = [0.0] * count
    running = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda index: p_values[index])):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
