"""The search among edges in SQL, against bisection."""

import math
from bisect import bisect_right

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from proxy.sources.searching import Search, edges_table, searched

SPECIAL = (0.0, -0.0, 5e-324, 1e308, -1e308)


def edges_of(rng: np.random.Generator, n_edges: int) -> list[float]:
    """Some edges in order, a few of them twice."""
    drawn = np.round(rng.normal(scale=10.0, size=n_edges), int(rng.integers(0, 4)))
    return sorted(drawn.tolist())


@pytest.mark.parametrize("n_edges", [1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 64, 65, 1000])
def test_the_last_edge_at_or_below_a_value_is_found(n_edges: int) -> None:
    rng = np.random.default_rng(n_edges)
    edges = {place: edges_of(rng, n) for place, n in ((0, n_edges), (4, int(rng.integers(1, 70))))}
    columns: dict[int, list[float | None]] = {}
    for place, some in edges.items():
        beside = [math.nextafter(edge, way) for edge in some for way in (-math.inf, math.inf)]
        values = [*some, *beside, *SPECIAL]
        columns[place] = [None, *rng.choice(values, size=300).tolist()]
    searches = {
        place: Search(f"x_{place}", pa.array(some, pa.float64())) for place, some in edges.items()
    }
    with duckdb.connect() as connection:
        rows = pa.table({f"x_{place}": pa.array(some) for place, some in columns.items()})
        connection.register("rows", rows)
        edges_listed = edges_table(searches)
        if edges_listed.num_columns:
            connection.register("edges", edges_listed)
        table = connection.sql(
            f"SELECT {searches[0].found(0)} AS at_0, {searches[4].found(4)} AS at_4, x_0, x_4 "  # noqa: S608 - of this test
            f"FROM ({searched('FROM rows', ['x_0', 'x_4'], searches, 'edges')})"
        ).to_arrow_table()
    for place, some in edges.items():
        for at, value in zip(*(table[name].to_pylist() for name in (f"at_{place}", f"x_{place}"))):  # noqa: B905
            reached = 0 if value is None else bisect_right(some, value)
            assert at == (reached - 1 if reached else None)


@pytest.mark.parametrize(
    ("first", "width", "n_edges"),
    [(0.0, 0.05, 20), (-3.0, 1 / 3, 64), (1e15, 2.0, 9), (-7.7, 1e-12, 5), (5e-324, 1e308, 2)],
)
def test_edges_at_even_steps_are_told_apart_to_the_last_digit(
    first: float, width: float, n_edges: int
) -> None:
    edges = [first + place * width for place in range(n_edges)]
    search = Search("x", pa.array(edges, pa.float64()))
    beside = [math.nextafter(edge, way) for edge in edges for way in (-math.inf, math.inf)]
    near = [edge + share * width for edge in edges for share in (-1e-5, -1e-7, 1e-7, 1e-5, 0.5)]
    values = [*edges, *beside, *near, *SPECIAL, edges[-1] + 9 * width, edges[0] - 9 * width]
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"x": pa.array([*values, None], pa.float64())}))
        sql = searched("FROM rows", ["x"], {0: search}, "edges")
        table = connection.sql(f"SELECT {search.found(0)} AS at, x FROM ({sql})").to_arrow_table()  # noqa: S608 - of this test
    for at, value in zip(table["at"].to_pylist(), table["x"].to_pylist(), strict=True):
        reached = 0 if value is None else bisect_right(edges, value)
        assert at == (reached - 1 if reached else None), value
    assert ("steps_0" in sql) == (n_edges > 2)


def test_a_relation_without_numbers_is_as_it_was() -> None:
    assert searched("FROM rows", ["x"], {}, "edges") == "FROM rows"
