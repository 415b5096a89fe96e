"""A day of one dashboard: thirty tiles, which twenty people look at through filters of their own.

A tile is a count, of all or of a band of one column, or a GROUP BY of one or two columns. Everybody
has filters of their own beside the one they all have, no filter at all: one to three conditions,
each a level of a category or a window of an ordered column. A load of the dashboard asks for every
tile through one of these; most loads are of a filter that was used before.

How many statements there are, how many of them are distinct, and what an exact-match cache would
cost are set to those of a day that was measured before this generator was written: 24,300, 1,294
and 1.28. No other figure was looked at when it was set.

These are inputs of benchmarks; nothing here computes an answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.thrift_workloads import target_of
from cube.axis import Axis, CategoryAxis
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from planner.workload import Wanted

N_RECORDS = 48_842
N_USERS = 20
N_LOADS_PER_USER = (37, 47)  # of the dashboard, in one day: 840 in the mean
N_FILTERS_OWN = (1, 2, 3)
N_CONDITIONS_SHARES = (0.1, 0.5, 0.4)  # of filters with one, two and three conditions
WINDOW_SHARES = (0.05, 0.2)  # of an ordered column, in one condition
FILTER_COLUMNS = (
    "age", "workclass", "education_num", "marital_status", "occupation", "race", "sex",
    "hours_per_week", "native_country", "income",
)  # fmt: skip
KEYS: tuple[tuple[str, ...], ...] = (
    ("sex",), ("race",), ("workclass",), ("education",), ("marital_status",), ("occupation",),
    ("relationship",), ("income",), ("native_country",), ("age",), ("hours_per_week",),
    ("income", "sex"), ("education", "income"), ("income", "occupation"),
    ("marital_status", "sex"), ("age", "sex"),
)  # fmt: skip
BIN_WIDTHS = {"age": 10, "hours_per_week": 10}  # of columns that are grouped by ranges
BANDS: tuple[tuple[str, int, int], ...] = (  # a column, and its first and last level of a count
    ("age", 0, 7), ("age", 8, 27), ("age", 28, 47), ("age", 48, 73),
    ("hours_per_week", 0, 33), ("hours_per_week", 34, 39), ("hours_per_week", 40, 98),
    ("education_num", 0, 7), ("education_num", 8, 11), ("education_num", 12, 15),
    ("capital_gain", 0, 0), ("capital_gain", 1, 99),
    ("income", 1, 1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tile:
    """One query of the dashboard: a band of a column or none, and columns to group by or none."""

    band: tuple[str, int, int] | None = None
    keys: tuple[str, ...] = ()


TILES = (
    Tile(),
    *(Tile(keys=keys) for keys in KEYS),
    *(Tile(band=one) for one in BANDS),
)

Filter = dict[str, NDArray[np.int64]]


def day(schema: Schema, draw: np.random.Generator) -> list[list[Wanted]]:
    """Every statement of the day, in its order; equal statements are one object."""
    filters = [_own_filters(schema, draw) for _ in range(N_USERS)]
    loads = [
        (user, int(draw.integers(len(filters[user]))))
        for user in range(N_USERS)
        for _ in range(int(draw.integers(N_LOADS_PER_USER[0], N_LOADS_PER_USER[1] + 1)))
    ]
    known: dict[tuple[int, int], list[list[Wanted]]] = {}
    statements = []
    for place in draw.permutation(len(loads)):
        user, chosen = loads[place]
        key = (user, chosen) if chosen else (0, 0)  # the first filter is everybody's: none
        if key not in known:
            known[key] = list(_load(schema, filters[user][chosen]))
        statements += known[key]
    return statements


def _own_filters(schema: Schema, draw: np.random.Generator) -> list[Filter]:
    """No filter, and those of one person."""
    found: list[Filter] = [{}]
    for _ in range(int(draw.choice(N_FILTERS_OWN))):
        n_columns = 1 + int(draw.choice(len(N_CONDITIONS_SHARES), p=N_CONDITIONS_SHARES))
        names = draw.permutation(FILTER_COLUMNS)[:n_columns]
        found.append({str(name): _condition(schema.by_name[name], draw) for name in names})
    return found


def _condition(axis: Axis, draw: np.random.Generator) -> NDArray[np.int64]:
    """One level of a category, or a window of a tenth to a third of an ordered column."""
    holds = np.zeros(axis.size, dtype=np.int64)
    if isinstance(axis, CategoryAxis):
        holds[int(draw.integers(axis.size))] = 1
        return holds
    width = max(1, int(draw.uniform(*WINDOW_SHARES) * axis.size))
    first = int(draw.integers(axis.size - width + 1))
    holds[first : first + width] = 1
    return holds


def _load(schema: Schema, filter_: Filter) -> Iterator[list[Wanted]]:
    """Every tile through one filter."""
    target = target_of(N_RECORDS)
    for tile in TILES:
        factors = dict(filter_)
        if tile.band is not None:
            name, first, last = tile.band
            within = np.zeros(schema.by_name[name].size, dtype=np.int64)
            within[first : last + 1] = 1
            factors[name] = factors.get(name, 1) * within
        if not all(holds.any() for holds in factors.values()):
            continue  # nobody meets both conditions
        partition = _partition(schema, tile.keys, factors) if tile.keys else None
        given = [Factor((name,), factors[name]) for name in sorted(factors)]
        yield [Wanted(QueryBlock(counting(given), partition).primitive[0], target)]


def _partition(schema: Schema, keys: tuple[str, ...], factors: Filter) -> Partition:
    """The groups of some columns that meet the conditions."""
    labels = np.zeros((), dtype=np.int64)
    for name in keys:
        of_level = np.arange(schema.by_name[name].size) // BIN_WIDTHS.get(name, 1)
        labels = np.add.outer(labels * (int(of_level[-1]) + 1), of_level)
    for place, name in enumerate(keys):
        if name in factors:
            shape = [-1 if place == dimension else 1 for dimension in range(len(keys))]
            labels = np.where(factors[name].reshape(shape), labels, -1)
    groups = np.unique(labels[labels >= 0])
    return Partition(keys, np.where(labels >= 0, np.searchsorted(groups, labels), -1))
