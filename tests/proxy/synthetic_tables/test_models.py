"""Rows of a model drawn a part at a time: as many, in whole parts, and of the model's counts."""

import numpy as np
import pyarrow as pa
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from proxy.synthetic_tables import models as module
from proxy.synthetic_tables.make import columns_of
from proxy.synthetic_tables.models import drawn, drawn_parts
from synthesis import Model
from synthesis.pairwise import measured_model
from synthesis.privbayes.network import Attribute, Node, fitted_network
from tests.support.made_up_rows import MadeUpRows

AXES = (CategoryAxis(name="city", values=("Oslo", "Rome")), IntegerAxis(name="age", low=0, high=4))
SEED = 11


def pairwise() -> Model:
    rows = np.random.default_rng(1).integers(0, [2, 5], (1000, 2))
    columns = columns_of(AXES)
    return measured_model(columns, MadeUpRows(columns, rows), budget=10.0)


def network() -> Model:
    attributes = [Attribute.plain(axis.name, axis.size) for axis in AXES]
    tables = [np.array([300.0, 700.0]), np.array([100.0, 200.0, 300.0, 250.0, 150.0])]
    return fitted_network(attributes, [Node("city"), Node("age")], tables)


@pytest.mark.parametrize("model", [pairwise(), network()], ids=["pairwise", "privbayes"])
def test_parts_are_the_rows_in_whole_and_each_has_the_counts_of_the_model(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = drawn(model, AXES, n_rows=7000, seed=SEED)
    monkeypatch.setattr(module, "N_ROWS_AT_ONCE", 3000)
    parts = list(drawn_parts(model, AXES, n_rows=7000, seed=SEED))
    assert [part.num_rows for part in parts] == [2334, 2333, 2333]
    assert drawn(model, AXES, n_rows=7000, seed=SEED).equals(pa.concat_tables(parts))
    assert {part.schema for part in parts} == {whole.schema}
    expected = _share_of_oslo(whole)
    for part in parts:
        assert _share_of_oslo(part) == pytest.approx(expected, abs=0.06)
    assert parts[1] != parts[2], "parts are not copies of each other"


@pytest.mark.parametrize("model", [pairwise(), network()], ids=["pairwise", "privbayes"])
def test_without_a_number_there_are_as_many_rows_as_the_model_estimates(model: Model) -> None:
    assert drawn(model, AXES, n_rows=None, seed=SEED).num_rows == round(model.total)
    assert drawn(model, AXES, n_rows=0, seed=SEED).num_rows == 0


def _share_of_oslo(table: pa.Table) -> float:
    return float(np.mean([city == "Oslo" for city in table["city"].to_pylist()]))
