"""Groups of levels and shares, as the report writes them."""

import numpy as np

from proxy.synthetic_tables.report.page import group_name, joined, percent
from tests.proxy.synthetic_tables.report.test_page import columns_of


def test_groups_of_levels_are_named_by_runs_where_levels_have_an_order() -> None:
    age, city, _ = columns_of("age", "city", "kind")
    assert group_name(age, np.array([0, 1, 2, 5, 7, 9, 11])) == "20 … 22, 25, 27 and 2 more"
    assert group_name(city, np.array([0, 1, 3])) == "Oslo, Paris, NULL"
    assert group_name(city, np.arange(4)) == "Oslo, Paris, Rome city and 1 more"


def test_a_share_is_all_of_it_only_if_nothing_is_missing() -> None:
    assert percent(9999 / 10_000) == "99.9 %"
    assert percent(1.0) == "100.0 %"
    assert percent(0.29) == "29.0 %"


def test_names_in_a_sentence_are_all_there_or_counted() -> None:
    assert joined(["age", "sex"], 3) == "age and sex"
    assert joined(["age", "sex", "job"], 3) == "age, sex and job"
    assert joined(["age", "sex", "job", "pay"], 3) == "age, sex, job and 1 more"
