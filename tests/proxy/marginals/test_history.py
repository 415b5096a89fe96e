"""The whole tables that marginals are made from, with noise of either kind."""

import numpy as np
import pytest

from cube.query import Partition, QueryBlock, counting
from inference.history import History
from proxy.marginals.make import of_scope, promised, whole_tables
from tests.support.mixed_history import Look

BY_SEX = Partition(("sex",), np.arange(2))
COUNTS = QueryBlock(counting(), BY_SEX)


def history_of(*looks: Look) -> History:
    history = History()
    history.add([look.measured() for look in looks])
    return history


def test_a_table_keeps_the_kind_of_its_noise_and_counts_with_its_variance() -> None:
    history = history_of(Look(COUNTS, 5.0, is_gaussian=True), Look(COUNTS, 5.0))
    gaussian, laplace = whole_tables(history, ["sex"])
    assert (gaussian.measured.is_gaussian, laplace.measured.is_gaussian) == (True, False)
    assert gaussian.measured.noisy.variance == pytest.approx(25.0)
    assert laplace.measured.noisy.variance == pytest.approx(50.0)
    assert gaussian.measured.onto(()).is_gaussian


def test_a_table_with_gaussian_noise_has_no_weight_that_could_be_raised() -> None:
    alone = whole_tables(history_of(Look(COUNTS, 5.0, is_gaussian=True)), ["sex"])
    assert [one.weight for one in alone] == [0]
    assert of_scope(alone, ("sex",)) is None
    both = whole_tables(history_of(Look(COUNTS, 5.0, is_gaussian=True), Look(COUNTS, 9.0)), ["sex"])
    raised = of_scope(both, ("sex",))
    assert raised is both[-1]
    assert promised(raised, None, 2 * both[-1].weight).partition is both[-1].partition
