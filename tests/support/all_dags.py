"""Every directed graph without a cycle over a few columns, by trying all of them."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

from synthesis.networks.graph import Dag


def _tried(names: tuple[str, ...]) -> Iterator[Dag]:
    pairs = list(combinations(names, 2))
    for choice in product((None, False, True), repeat=len(pairs)):
        arcs = frozenset(
            (b, a) if turned else (a, b)
            for (a, b), turned in zip(pairs, choice, strict=True)
            if turned is not None
        )
        try:
            yield Dag(names, arcs)
        except ValueError:
            continue  # a cycle


@cache
def all_dags(names: str) -> tuple[Dag, ...]:
    """The graphs over columns of one letter each."""
    return tuple(_tried(tuple(names)))
