"""The widest law with a given half-width is nowhere narrower than the law that it replaces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.noise_law.law import AskedLaw, law_of_noise
from inference.posterior import Posterior

ROUNDING = 1 + 1e-9
confidences = st.floats(0.05, 0.9999)
scales = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=8)


@given(scales, confidences, confidences)
def test_no_interval_of_any_confidence_is_too_narrow(
    scales: list[float], asked: float, shown: float
) -> None:
    true = law_of_noise(np.array(scales))
    law = AskedLaw(true.half_width(asked), asked)
    assert law.half_width(shown) * ROUNDING >= true.half_width(shown) * (1 - 1e-6)


@given(scales, confidences)
def test_the_standard_deviation_is_not_too_small(scales: list[float], asked: float) -> None:
    true = law_of_noise(np.array(scales))
    shown = Posterior(0.0, AskedLaw(true.half_width(asked), asked)).standard_deviation
    assert shown * ROUNDING >= Posterior(0.0, true).standard_deviation


@given(scales, confidences, st.floats(0.0, 500.0))
def test_the_tail_is_bounded(scales: list[float], asked: float, z: float) -> None:
    true = law_of_noise(np.array(scales))
    law = AskedLaw(true.half_width(asked), asked)
    assert law.tail(z) >= true.tail(z) - true.tail_error - 1e-9
    assert law.tail(-z) == pytest.approx(1 - law.tail(z))


def test_at_the_confidence_asked_for_it_is_what_was_asked_for() -> None:
    assert AskedLaw(20.0, 0.95).half_width(0.95) == 20.0
    assert AskedLaw(0.0, 0.95).half_width(0.999) == 0.0


@pytest.mark.parametrize(("half_width", "confidence"), [(-1.0, 0.9), (float("inf"), 0.9), (1, 1)])
def test_an_invalid_half_width_is_refused(half_width: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="half-width"):
        AskedLaw(half_width, confidence)
