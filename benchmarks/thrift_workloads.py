"""Workloads on which measuring too narrowly and measuring too widely cost budget differently.

Counts with a condition on each of a few columns of Adult: on two columns (`two_column`), on one to
three (`ad_hoc`), on four (`four_column`). Ranges of one ordered column of 128 to a million levels,
and boxes on two. Counts over four columns from a pool of 34,425.

These are inputs of benchmarks; nothing here computes an answer.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.turbo_pool import SCHEMA as POOL_SCHEMA
from benchmarks.turbo_pool import SIZES, drawn_pool
from cube.axis import Axis, CategoryAxis, IntegerAxis
from cube.query import Factor, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.workload import Wanted

Request = list[Wanted]
N_RECORDS_ADULT = 48_842
N_RECORDS_RANGES = 100_000
CONFIDENCE = 0.95
SHARE = 0.01
N_LEVELS_LISTED_MAX = 3  # of a category in one condition


def counted(conditions: Mapping[str, NDArray[np.bool_]], target: AccuracyTarget) -> Request:
    """The count of what meets a condition on each of some columns."""
    factors = [Factor((name,), conditions[name].astype(np.int64)) for name in sorted(conditions)]
    return [Wanted(QueryBlock(counting(factors)).primitive[0], target)]


def target_of(n_records: int, share: float = SHARE) -> AccuracyTarget:
    """Within a share of the records at the usual confidence."""
    return AccuracyTarget(half_width=share * n_records, confidence=CONFIDENCE)


def condition(axis: Axis, draw: np.random.Generator) -> NDArray[np.bool_]:
    """A few levels of a category, or a range of an ordered column; never all of it."""
    holds = np.zeros(axis.size, dtype=np.bool_)
    if isinstance(axis, CategoryAxis):
        n_levels = min(int(draw.integers(1, N_LEVELS_LISTED_MAX + 1)), axis.size - 1)
        holds[draw.permutation(axis.size)[:n_levels]] = True
        return holds
    while not holds.any() or holds.all():
        first, last = np.sort(draw.integers(0, axis.size, size=2))
        holds[:] = False
        holds[first : last + 1] = True
    return holds


def counts_on(
    schema: Schema,
    n_columns: tuple[int, ...],
    n_requests: int,
    draw: np.random.Generator,
) -> list[Request]:
    """Counts with a condition on each of some columns, all drawn uniformly."""
    target = target_of(N_RECORDS_ADULT)
    requests = []
    for _ in range(n_requests):
        chosen = draw.permutation(len(schema.axes))[: int(draw.choice(n_columns))]
        axes = [schema.axes[place] for place in chosen]
        requests.append(counted({axis.name: condition(axis, draw) for axis in axes}, target))
    return requests


def square(*sizes: int) -> Schema:
    """A table of ordered columns of given sizes."""
    axes = tuple(
        IntegerAxis(name=name, low=0, high=size - 1)
        for name, size in zip("xyz", sizes, strict=False)
    )
    return Schema(table="t", axes=axes, n_records_max=N_RECORDS_RANGES)


def ranges(schema: Schema, n_requests: int, draw: np.random.Generator) -> list[Request]:
    """Counts of a range of every column, both ends uniform."""
    target = target_of(N_RECORDS_RANGES)
    requests = []
    for _ in range(n_requests):
        conditions = {}
        for axis in schema.axes:
            first, last = np.sort(draw.integers(0, axis.size, size=2))
            places = np.arange(axis.size)
            conditions[axis.name] = (first <= places) & (places <= last)
        requests.append(counted(conditions, target))
    return requests


def pool(n_requests: int, draw: np.random.Generator) -> list[Request]:
    """Draws from Turbo's pool of products of value sets, at its target."""
    target = AccuracyTarget(half_width=0.05 * POOL_SCHEMA.n_records_max, confidence=0.999)
    requests = []
    for sets in drawn_pool(0, n_requests, draw):
        conditions = {
            name: np.isin(np.arange(size), chosen)
            for (name, size), chosen in zip(SIZES.items(), sets, strict=True)
        }
        requests.append(counted(conditions, target))
    return requests


def workloads(
    adult: Schema,
) -> dict[str, tuple[Schema, Callable[[np.random.Generator], list[Request]]]]:
    """Every workload by its name: the table, and what draws the requests."""
    found: dict[str, tuple[Schema, Callable[[np.random.Generator], list[Request]]]] = {
        "two_column": (adult, lambda draw: counts_on(adult, (2,), 200, draw)),
        "ad_hoc": (adult, lambda draw: counts_on(adult, (1, 2, 3), 200, draw)),
        "four_column": (adult, lambda draw: counts_on(adult, (4,), 200, draw)),
        "pool": (POOL_SCHEMA, lambda draw: pool(500, draw)),
    }
    for size in (128, 1_024, 4_096, 4_097, 16_384, 16_385, 65_536, 1_000_000):
        schema = square(size)
        found[f"ranges_{size}"] = (schema, partial(ranges, schema, 600))
    for sizes in ((64, 64), (65, 64), (200, 200)):
        schema = square(*sizes)
        found[f"boxes_{sizes[0]}x{sizes[1]}"] = (schema, partial(ranges, schema, 400))
    return found
