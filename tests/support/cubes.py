"""Random small cubes and queries on them, with a brute-force reading of every coefficient."""

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term

SIZES = {"a": 3, "b": 4, "c": 2, "d": 3}


@st.composite
def factors(draw: st.DrawFn, axes: tuple[str, ...]) -> Factor:
    shape = tuple(SIZES[name] for name in axes)
    n_cells = int(np.prod(shape))
    values = draw(
        st.one_of(
            st.lists(st.integers(0, 1), min_size=n_cells, max_size=n_cells),
            st.lists(st.integers(-5, 9), min_size=n_cells, max_size=n_cells),
        )
    )
    return Factor(axes, np.array(values, dtype=np.int64).reshape(shape))


@st.composite
def terms(draw: st.DrawFn, *, whole: bool = False) -> Term:
    names = draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True, max_size=3))
    if len(names) > 1 and draw(st.booleans()):
        groups = [tuple(sorted(names[:2])), *((name,) for name in names[2:])]
    else:
        groups = [(name,) for name in names]
    denominator = 1 if whole else draw(st.integers(1, 4))
    numerator = draw(st.integers(-4, 4).filter(bool))
    return Term(Fraction(numerator, denominator), tuple(draw(factors(group)) for group in groups))


@st.composite
def queries(draw: st.DrawFn, *, whole: bool = False) -> LinearQuery:
    constant = Fraction(0) if whole else Fraction(draw(st.integers(-20, 20)), 2)
    return LinearQuery(tuple(draw(st.lists(terms(whole=whole), min_size=1, max_size=3))), constant)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    axes = tuple(
        sorted(draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True, min_size=1, max_size=2)))
    )
    shape = tuple(SIZES[name] for name in axes)
    n_cells = int(np.prod(shape))
    raw = draw(st.lists(st.integers(-1, 3), min_size=n_cells, max_size=n_cells))
    names = {
        label: place for place, label in enumerate(sorted({label for label in raw if label >= 0}))
    }
    labels = [names.get(label, -1) for label in raw]
    if not names:
        labels[0] = 0
    return Partition(axes, np.array(labels, dtype=np.int64).reshape(shape))


@st.composite
def blocks(draw: st.DrawFn, *, whole: bool = False) -> QueryBlock:
    query = draw(queries(whole=whole))
    return QueryBlock(query, draw(st.one_of(st.none(), partitions())))


def dense_rows(block: QueryBlock, sizes: dict[str, int] = SIZES) -> list[list[Fraction]]:
    """Every row of a block as exact coefficients on every cell, axes sorted, row-major."""
    axes = sorted(sizes)
    rows = [[Fraction(0)] * int(np.prod(list(sizes.values()))) for _ in range(block.n_rows)]
    for place, levels in enumerate(itertools.product(*(range(sizes[name]) for name in axes))):
        cell = dict(zip(axes, levels, strict=True))
        value = Fraction(0)
        for term in block.query.terms:
            product = term.scale
            for factor in term.factors:
                product *= int(factor.values[tuple(cell[name] for name in factor.axes)])
            value += product
        group = 0
        if block.partition is not None:
            group = int(block.partition.labels[tuple(cell[name] for name in block.partition.axes)])
        if group >= 0:
            rows[group][place] = value
    return rows
