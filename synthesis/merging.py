"""Joins released models of separate tables into the model of all their rows. Free.

The third way of learning from several holders: each learns a model of its own rows, and the models
are joined without looking at any data again. Released numbers are read, and nothing is measured.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from cube.query import Partition
from cube.statistic import Choice, Score
from synthesis.networks import mutual_information
from synthesis.privbayes import (
    Attribute,
    BayesianNetwork,
    LearningSettings,
    chosen_nodes,
    draw_rows,
    exact_law,
    fitted_network,
    views_of,
)
from synthesis.tables import Floats, Integers

ROWS_OF_A_CELL: Final = 4.0  # on average, in the largest table of a joined network
N_CANDIDATES_REFIT: Final = 2_000  # each is a table of its own: more take minutes
N_EXACT_MAX: Final = 2**14  # cells of a table on the way to an exact one, which would take long
N_DRAWN_MAX: Final = 1_000_000  # rows, where tables are too large to be exact


def merged_network(
    networks: Sequence[BayesianNetwork],
    weights: Sequence[float],
    rng: np.random.Generator,
    *,
    degree: int | None = None,
) -> BayesianNetwork:
    """The network that is nearest to a mixture of networks.

    Parameters
    ----------
    networks : sequence of BayesianNetwork
        Of the same columns; the views of the first are used.
    weights : sequence of float
        The part of each in the mixture: not negative, with a positive sum.
    rng : numpy.random.Generator
        Chooses the first column, and draws rows where tables are too large to be exact.
    degree : int, optional
        The most parents of a column; that of the networks by default.

    Notes
    -----
    The published way [1]_ draws rows from each model and learns a network from them, without noise.
    Here the tables of the mixture are computed, by variable elimination in each network, wherever
    that is feasible: they are what tables of infinitely many rows would be.

    References
    ----------
    .. [1] V. Digalakis, "Data Analytics with Differential Privacy", Technical University of Crete,
       2018, algorithm 3.7.
    """
    mixture = _Mixture(networks, weights, rng)
    attributes = mixture.attributes
    total = math.fsum(one.total for one in networks)
    largest = max(law.size for one in networks for law in one.conditionals)
    nodes = chosen_nodes(
        attributes,
        mixture.choose,
        rng,
        max(float(largest), total / ROWS_OF_A_CELL),
        LearningSettings(
            score=Score.INFORMATION,
            degree=max(one.degree for one in networks) if degree is None else degree,
        ),
        N_CANDIDATES_REFIT,
    )
    by_name = {one.name: one for one in attributes}
    tables = [total * mixture.shares(views_of(by_name, node)) for node in nodes]
    return fitted_network(attributes, nodes, tables, total=total)


class _Mixture:
    """Tables of a mixture of networks, and the best candidate by them."""

    def __init__(
        self,
        networks: Sequence[BayesianNetwork],
        weights: Sequence[float],
        rng: np.random.Generator,
    ) -> None:
        parts = np.array(weights, dtype=np.float64)
        if not (parts.size == len(networks) and (parts >= 0).all() and 0 < parts.sum() < math.inf):
            raise ValueError("each model needs a weight that is not negative, with a positive sum")
        self.attributes = networks[0].attributes
        self._networks = networks
        self._weights = parts / parts.sum()
        self._rng = rng
        self._drawn: Mapping[str, Integers] | None = None
        self._scores: dict[tuple[bytes, ...], float] = {}

    def choose(self, choice: Choice) -> int:
        """The place of the candidate with the most information."""
        scores = []
        for candidate in choice.candidates:
            views = [choice.views[place] for place in (candidate.child, *candidate.parents)]
            key = tuple(view.axes[0].encode() + view.labels.tobytes() for view in views)
            if key not in self._scores:
                table = self.shares(views)
                self._scores[key] = float(mutual_information(table[np.newaxis], 0)[0])
            scores.append(self._scores[key])
        return int(np.argmax(scores))

    def shares(self, views: Sequence[Partition]) -> Floats:
        """The share of each combination of classes, an axis for each view."""
        names = [view.axes[0] for view in views]
        classes = [self._classes(view) for view in views]
        shape = [view.n_groups for view in views]
        found = np.zeros(shape)
        laws = [exact_law(one, names, {}, N_EXACT_MAX) for one in self._networks]
        exact = [one for one in laws if one is not None]
        if len(exact) == len(laws):
            shares = np.tensordot(self._weights, np.stack([one.shares for one in exact]), 1)
            np.add.at(found, np.ix_(*classes), shares)
            return found
        rows = self._rows()
        np.add.at(
            found, tuple(own[rows[name]] for name, own in zip(names, classes, strict=True)), 1
        )
        return np.asarray(found / found.sum())

    def _classes(self, view: Partition) -> Integers:
        """The class of the view for every class of the column's finest view."""
        own: Attribute = next(one for one in self.attributes if one.name == view.axes[0])
        labels: Integers = np.zeros(own.size, dtype=np.int64)
        labels[own.views[0].labels] = view.labels
        return labels

    def _rows(self) -> Mapping[str, Integers]:
        """Rows of all networks in proportion to their weights."""
        if self._drawn is None:
            n_rows = np.floor(self._weights * N_DRAWN_MAX).astype(int).tolist()
            rows = np.concatenate(
                [
                    draw_rows(one, self._rng, n_rows=size)
                    for one, size in zip(self._networks, n_rows, strict=True)
                ]
            )
            names = [one.name for one in self.attributes]
            self._drawn = dict(zip(names, rows.T.astype(np.int64), strict=True))
        return self._drawn
