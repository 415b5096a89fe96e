"""Files of models: written and read back, and whatever else is in them refused in one way."""

from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.axis import Axis, CategoryAxis, IntegerAxis
from proxy.synthetic_tables.models import ModelFile, drawn, encoded
from synthesis import Column, Model, PairwiseModel, StratifiedModel
from synthesis.buckets import Buckets
from synthesis.model import PairTable
from synthesis.privbayes.network import Attribute, BayesianNetwork, Node, Parent

CITY = CategoryAxis(name="city", values=("Oslo", "Rome"))
AGE = IntegerAxis(name="age", low=0, high=2)
TARGET = CategoryAxis(name="target", values=("no", "yes"))
KINDS = ("pairwise", "strata", "network")


def pairwise() -> PairwiseModel:
    counts = np.array([[3.0, 1.0], [1.0, 5.0], [0.0, 2.0]])
    groups = Buckets(np.arange(3)), Buckets(np.arange(2))
    return PairwiseModel(
        columns=(Column("city", 2), Column("age", 3, 3)),
        buckets={"city": groups[1], "age": groups[0]},
        total=12.0,
        shares={"city": counts.sum(axis=0) / 12, "age": counts.sum(axis=1) / 12},
        pairs={("age", "city"): PairTable(groups, counts, 1.5)},
        parts={"city": np.ones(2), "age": np.ones(3)},
    )


@cache
def file_of(kind: str) -> ModelFile:
    axes: tuple[Axis, ...] = (CITY, AGE)
    model: Model = pairwise()
    if kind == "strata":
        axes = (TARGET, *axes)
        columns = (Column("target", 2), *pairwise().columns)
        model = StratifiedModel(columns, ("target",), {(0,): pairwise(), (1,): pairwise()})
    elif kind == "network":
        nodes = Node("age"), Node("city", (Parent("age"),), 1)
        laws = np.array([0.2, 0.3, 0.5]), np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
        attributes = Attribute.plain("city", 2), Attribute.plain("age", 3)
        model = BayesianNetwork(attributes, nodes, laws, 12.0)
    return ModelFile(axes, model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_read_as_it_was_written(kind: str) -> None:
    written = file_of(kind)
    found = ModelFile.from_bytes(written.to_bytes())
    assert found.axes == written.axes
    assert encoded(found.model) == encoded(written.model)
    rows = [drawn(one.model, one.axes, n_rows=40, seed=3) for one in (written, found)]
    assert rows[0].equals(rows[1])


@given(kind=st.sampled_from(KINDS), at=st.floats(0, 1, exclude_max=True))
@settings(max_examples=60, deadline=None)
def test_a_file_that_is_cut_anywhere_is_refused(kind: str, at: float) -> None:
    content = file_of(kind).to_bytes()
    with pytest.raises(ValueError, match="it is not"):
        ModelFile.from_bytes(content[: int(at * len(content))])


@given(
    kind=st.sampled_from(KINDS),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_a_damaged_file_is_refused_or_a_model_that_rows_are_drawn_from(
    kind: str, changes: list[tuple[float, int]]
) -> None:
    """Never another error, which would be a traceback for who reads it."""
    content = bytearray(file_of(kind).to_bytes())
    for at, byte in changes:
        content[int(at * len(content))] = byte
    with suppress(ValueError):
        found = ModelFile.from_bytes(bytes(content))
        assert drawn(found.model, found.axes, n_rows=5, seed=1).num_rows == 5


DIGITS = b"0123456789.-e"


@given(
    kind=st.sampled_from(KINDS),
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from(DIGITS)),
        min_size=1,
        max_size=3,
    ),
)
@settings(max_examples=60, deadline=None)
def test_other_numbers_are_refused_or_a_model_that_rows_are_drawn_from(
    kind: str, changes: list[tuple[float, int]]
) -> None:
    content = bytearray(file_of(kind).to_bytes())
    places = [at for at, byte in enumerate(content) if byte in DIGITS[:10]]
    for at, byte in changes:
        content[places[int(at * len(places))]] = byte
    try:
        found = ModelFile.from_bytes(bytes(content))
    except ValueError:
        return
    assert drawn(found.model, found.axes, n_rows=5, seed=1).num_rows == 5
