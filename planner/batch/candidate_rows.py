"""Candidate rows for a batch of queries, as coefficients on the batch's atoms and as blocks to buy.

Four kinds: rows of the history, which may be raised; single atoms; runs of consecutive atoms (the
nodes of a hierarchy); and the queries themselves. A family is the rows of one kind and size: the
first search gives each family one weight.

Nothing here weighs or prices.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.measurement import Measurement, PlannedMeasurement, Weight
from cube.query import Partition, QueryBlock, counting
from inference.blue.atoms import Atoms

BRANCHINGS = (2, 3, 4, 6, 8, 10, 16)  # of the hierarchies that are tried, each by itself

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EarlierMeasurement:
    """A measurement of the history that a batch may build on, and its place there."""

    measurement: Measurement
    place: int
    may_be_raised: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a candidate row comes from.

    Parameters
    ----------
    kind : str
        "history", "cells", "nodes" or "query".
    source : int
        The number of the history's entry, the branching of the hierarchy, or the query's block.
    row : int
        Its row in that block.
    """

    kind: str
    source: int
    row: int


@dataclass(frozen=True, eq=False)
class CandidateRows:
    """Rows on atoms, (k, n_atoms), where each comes from, and its family, (k,)."""

    rows: Floats
    origins: tuple[Origin, ...]
    families: NDArray[np.int64]

    def of_families(self, chosen: Iterable[tuple[str, int]]) -> NDArray[np.bool_]:
        """Which rows have one of these kinds and sources."""
        wanted = set(chosen)
        return np.array([(origin.kind, origin.source) in wanted for origin in self.origins])

    def of_kind(self, kind: str) -> NDArray[np.bool_]:
        """Which rows are of a kind."""
        return np.array([origin.kind == kind for origin in self.origins])

    def restricted(self, keep: NDArray[np.bool_]) -> "CandidateRows":
        """Some of the rows."""
        places = np.flatnonzero(keep)
        origins = tuple(self.origins[place] for place in places)
        return CandidateRows(self.rows[places], origins, self.families[places])


def candidate_rows(
    history: Sequence[Floats], queries: Sequence[Floats], n_atoms: int, *, with_cells: bool
) -> CandidateRows:
    """All candidate rows, each once.

    Parameters
    ----------
    history, queries : sequence of (n_rows, n_atoms) ndarray of float64
        The rows of each block.
    n_atoms : int
    with_cells : bool
        Whether atoms and runs of atoms can be written as blocks at all.
    """
    found: list[tuple[Floats, Origin, int]] = []
    n_families = 0
    for source, block in enumerate(history):
        found += [(row, Origin("history", source, i), n_families) for i, row in enumerate(block)]
        n_families += 1
    asked = np.concatenate(queries)
    if with_cells:
        touched = np.flatnonzero(np.abs(asked).max(axis=0) > 0)
        for kind, source, rows in _cells_and_nodes(touched, n_atoms):
            found += [(row, Origin(kind, source, i), n_families) for i, row in enumerate(rows)]
            n_families += 1
    for source, block in enumerate(queries):
        found += [(row, Origin("query", source, i), n_families) for i, row in enumerate(block)]
        n_families += 1
    return _distinct(found)


def _cells_and_nodes(
    touched: NDArray[np.int64], n_atoms: int
) -> Iterable[tuple[str, int, list[Floats]]]:
    """Atoms, then the levels of each hierarchy from the leaves up."""
    yield "cells", 1, _runs(touched, 1, n_atoms)
    for branching in BRANCHINGS:
        length = branching
        while length < branching * touched.size and branching < touched.size:
            yield "nodes", branching, _runs(touched, length, n_atoms)
            length *= branching


def _runs(touched: NDArray[np.int64], length: int, n_atoms: int) -> list[Floats]:
    rows = []
    for first in range(0, touched.size, length):
        row = np.zeros(n_atoms)
        row[touched[first : first + length]] = 1.0
        rows.append(row)
    return rows


def _distinct(found: Sequence[tuple[Floats, Origin, int]]) -> CandidateRows:
    """The first of every set of equal rows.

    A hierarchy keeps all its rows, as it is used whole; so does the history, which is given. A row
    of the history also stands for equal candidates, since raising it is cheaper than measuring an
    equal row again.
    """
    n_alike = Counter(origin.source for _, origin, _ in found if origin.kind == "history")
    seen: set[tuple[str, int, bytes]] = set()
    kept = []
    for row, origin, family in found:
        hierarchy = origin.source if origin.kind == "nodes" else 0
        names = [("", 0, row.tobytes()), (origin.kind, hierarchy, row.tobytes())]
        is_known = names[1] in seen or (origin.kind != "nodes" and names[0] in seen)
        if origin.kind != "history" or n_alike[origin.source] == 1:
            seen.update(names)
        if row.any() and (origin.kind == "history" or not is_known):
            kept.append((row, origin, family))
    return CandidateRows(
        rows=np.array([row for row, _, _ in kept]),
        origins=tuple(origin for _, origin, _ in kept),
        families=np.array([family for _, _, family in kept]),
    )


def purchases(
    candidates: CandidateRows,
    weights: Mapping[int, Weight],
    atoms: Atoms,
    history: Sequence[EarlierMeasurement],
    queries: Sequence[QueryBlock],
) -> tuple[PlannedMeasurement, ...]:
    """Rows and their weights as measurements; rows of equal weight are bought together.

    Parameters
    ----------
    candidates : CandidateRows
    weights : mapping of int to Weight
        The weight of each row to buy or raise.
    atoms : Atoms
        The atoms that the rows are on.
    history, queries
        The blocks that the origins of the rows refer to.
    """
    planned: list[PlannedMeasurement] = []
    alike: dict[tuple[int, Weight], list[int]] = {}
    raised: set[int] = set()
    for place, weight in weights.items():
        origin = candidates.origins[place]
        if origin.kind == "history":
            if origin.source not in raised:
                earlier = history[origin.source]
                block = earlier.measurement.block
                planned.append(PlannedMeasurement(block, weight, raised_from=earlier.place))
            raised.add(origin.source)
            continue
        source = origin.source if origin.kind == "query" else -1
        alike.setdefault((source, weight), []).append(place)
    for (source, weight), places in alike.items():
        if source >= 0:
            chosen = [candidates.origins[place].row for place in places]
            planned.append(PlannedMeasurement(_some_rows(queries[source], chosen), weight))
        else:
            blocks = _counting_blocks(candidates.rows[places], atoms)
            planned += [PlannedMeasurement(block, weight) for block in blocks]
    return tuple(planned)


def _some_rows(block: QueryBlock, chosen: Sequence[int]) -> QueryBlock:
    """The block with only the chosen rows."""
    if block.partition is None or len(chosen) == block.n_rows:
        return block
    renamed = np.full(block.n_rows + 1, -1)
    renamed[sorted(chosen)] = np.arange(len(chosen))
    return QueryBlock(block.query, block.partition.renumbered(renamed))


def _counting_blocks(rows: Floats, atoms: Atoms) -> list[QueryBlock]:
    """Sets of atoms as blocks of disjoint groups; greedy packing keeps the blocks few."""
    of_atom: list[NDArray[np.int64]] = []
    for row in rows[np.argsort(-rows.sum(axis=1), kind="stable")]:
        inside = row > 0
        fitting = [labels for labels in of_atom if (labels[inside] < 0).all()]
        if not fitting:
            fitting = [np.full(row.size, -1)]
            of_atom.append(fitting[0])
        fitting[0][inside] = fitting[0].max() + 1
    return [QueryBlock(counting(), _partition(labels, atoms)) for labels in of_atom]


def _partition(of_atom: NDArray[np.int64], atoms: Atoms) -> Partition | None:
    """Groups of atoms as groups of cells, on the axes that tell them apart; None if none does."""
    labels = of_atom[atoms.of_cell].reshape(atoms.grid.shape)
    axes: list[str] = []
    places: list[NDArray[np.int64]] = []
    for name, classes in zip(atoms.grid.axes, atoms.grid.classes, strict=True):
        dimension = len(axes)
        if (labels == labels.take([0], axis=dimension)).all():
            labels = labels.take([0], axis=dimension).squeeze(axis=dimension)
        else:
            axes.append(name)
            places.append(classes.of_level)
    return Partition(tuple(axes), labels[np.ix_(*places)]) if axes else None
