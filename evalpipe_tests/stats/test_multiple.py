import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from evalpipe.stats.multiple import holm


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.001, 0.012, 0.03, 0.04, 0.2], [0.005, 0.048, 0.09, 0.09, 0.2]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.04], [0.04]),
        ([], []),
    ],
)
def test_golden_values(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


@settings(max_examples=20)  # the oracle takes 20 ms
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@pytest.mark.slow
def test_equals_statsmodels(p_values: list[float]) -> None:
    oracle = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(list(oracle), abs=1e-12)
