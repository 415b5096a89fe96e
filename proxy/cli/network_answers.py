"""The tables that a network is learned from, of a collection of randomised answers. All is free.

How uncertain a table is, only those say who were asked about all of its columns: margins that are
known better, from others, hide how noisy the rest of it is. What tables of independent columns show
is found by drawing them, randomising them through the same channels, and estimating them in the
same way.

Nothing is learned here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import InvalidRequest, TooLarge
from cube.runtime import cached_property
from local_dp.campaign import Campaign
from local_dp.campaign_text import read_campaign
from local_dp.estimates.collection import AgreeingTable, CollectionEstimates
from local_dp.estimates.simulated import AnsweredTable
from local_dp.estimates.tally import Tally
from planner.sql.messages import listed
from proxy.cli.client import ServerAddress, calling
from proxy.collections.size import N_PLACES_MAX, n_places_of
from proxy.protocol import tacit_pb2
from synthesis.fitting import projected
from synthesis.networks.score import N_NULL_DRAWS
from synthesis.networks.source import ShareTable
from synthesis.tables import Column, Floats

N_CELLS_MAX: Final = 2**11  # of a table, as for the tests of independence of a collection
N_SIMULATED_MAX: Final = 2**24  # places times cells of one table: a few seconds, 1 GB
FEWER: Final = "Leave out the column with most levels: name the others in --columns."
WORK_OF_PLACE: Final = 75  # for each cell, in the units of `synthesis.networks.work`


class AnsweredSource:
    """The tables of a collection, as networks are learned from them.

    Parameters
    ----------
    estimates : CollectionEstimates
    names : sequence of str
        Attributes; some combination with answers has each `width_max` of them together.
    width_max : int

    Raises
    ------
    InvalidRequest
        If nobody has answered about some of them together.
    """

    def __init__(
        self, estimates: CollectionEstimates, names: Sequence[str], *, width_max: int
    ) -> None:
        check_together(estimates.campaign, names, width_max, estimates.covered)
        self._estimates = estimates
        self._names = tuple(sorted(names))
        self._effective: dict[tuple[int, ...], float] = {}
        self.width_max = width_max

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The attributes, by name."""
        by_name = self._estimates.campaign.by_name
        return tuple(Column(name, len(by_name[name].levels)) for name in self._names)

    def effective_rows(self, places: Sequence[int]) -> float:
        """The number of rows whose shares, without noise, would be as uncertain as these.

        Of `m` rows, shares that are equal vary by ``(1 - 1 / K) / m``, in all `K` cells together;
        what these vary by is what channels and numbers of answers alone say.
        """
        key = tuple(sorted(places))
        if key not in self._effective:
            table = self.answered(key)
            variance = float((table.scales**2).sum()) / table.n_answers**2
            self._effective[key] = (1 - 1 / table.scales.size) / variance
        return self._effective[key]

    def table(self, places: Sequence[int]) -> ShareTable:
        """The nearest shares to those of the combinations that have these columns.

        Combinations are made to agree, so that what a wide table adds to a narrow one is not the
        difference between two groups of respondents. It leaves what columns say of each other as
        uncertain as their own combinations make it, which is what the law of the table says.
        """
        names = [self._names[place] for place in sorted(places)]
        holder = next(one for one in self._agreeing if set(names) <= set(one.scope))
        others = tuple(axis for axis, name in enumerate(holder.scope) if name not in names)
        counts = holder.counts.sum(axis=others)
        n = float(self.answered(places).n_answers)
        cells = n / counts.sum() * counts.reshape(1, -1)
        nearest = projected(cells, np.array([n]), np.ones_like(cells))
        law = _RandomisedAgain(self, tuple(places))
        return ShareTable(nearest.reshape(counts.shape) / nearest.sum(), n, law)

    @cached_property
    def _agreeing(self) -> list[AgreeingTable]:
        return self._estimates.agreeing(self._names)

    def answered(self, places: Sequence[int]) -> AnsweredTable:
        """What the combinations that have these columns say of them; made anew, as it is large."""
        scope = tuple(self._names[place] for place in sorted(places))
        sizes = tuple(self.columns[place].size for place in sorted(places))
        cells = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
        return self._estimates.tabled(QueryBlock(counting(), Partition(scope, cells)), sizes)


@dataclass(frozen=True, eq=False)
class _RandomisedAgain:
    """The law of a table of answers: other respondents, through the same channels."""

    source: AnsweredSource
    places: tuple[int, ...]

    def noisy_tables(
        self, probabilities: Floats, total: float, n_tables: int, generator: np.random.Generator
    ) -> Floats:
        """See `inference.independence.cell_noise.NoisyTables`."""
        table = self.source.answered(self.places)
        return table.noisy_tables(probabilities, total, n_tables, generator)


def campaign_of(server: ServerAddress, name: str) -> Campaign:
    """What respondents of a collection are asked."""
    request = tacit_pb2.ListCollectionsRequest(name=name)
    with calling(server) as stub:
        found = stub.ListCollections(request, metadata=server.metadata).collections[0]
    return read_campaign(found.campaign)


def check_readable(campaign: Campaign) -> None:
    """Refuse a collection whose counts are too many to be sent.

    Raises
    ------
    TooLarge
    """
    n_places = n_places_of(campaign)  # older collections may be larger than new ones
    if n_places > N_PLACES_MAX:
        raise TooLarge(
            f"The answers to {campaign.name} are counted at {n_places} places; a network is "
            f"learned from {N_PLACES_MAX} at most."
        )


def check_together(
    campaign: Campaign, names: Sequence[str], width: int, covered: Sequence[Scope]
) -> None:
    """Refuse columns of which some were not asked about together, or are not answered yet.

    Raises
    ------
    InvalidRequest
    """
    if not covered:
        raise InvalidRequest(f"Nobody has answered {campaign.name} yet.")
    for scope in combinations(sorted(names), width):
        if not any(set(scope) <= set(one) for one in covered):
            known = "; ".join(", ".join(one) for one in covered)
            if campaign.covering(scope):
                raise InvalidRequest(
                    f"Nobody has answered about {listed(scope)} yet.",
                    hint=f"Answered until now: {known}.",
                )
            raise InvalidRequest(
                f"Nobody was asked about {listed(scope)} together.", hint=f"Asked about: {known}."
            )


def simulation(campaign: Campaign, names: Sequence[str]) -> float:
    """The work of a table of some columns, in the units of `synthesis.networks.work`.

    Raises
    ------
    TooLarge
        If it has too many cells, or its answers are counted at too many places.
    """
    scope, n_cells = tuple(sorted(names)), campaign.n_cells(tuple(sorted(names)))
    if n_cells > N_CELLS_MAX:
        raise TooLarge(
            f"The table of {', '.join(scope)} has {n_cells} cells; of a collection, {N_CELLS_MAX} "
            "are learned from.",
            hint=FEWER,
        )
    holding = [campaign.combinations[place].channel for place in campaign.covering(scope)]
    n_places = sum(one.n_tallies for one in holding)
    if n_places * n_cells > N_SIMULATED_MAX:
        raise TooLarge(
            f"Answers about {', '.join(scope)} are counted at {n_places} places, too many to be "
            "simulated.",
            hint=FEWER,
        )
    return WORK_OF_PLACE * n_places * max(N_NULL_DRAWS, n_cells)


def read_answers(
    server: ServerAddress, campaign: Campaign, told: Callable[[str], None]
) -> CollectionEstimates:
    """Everything that was answered, as it was randomised."""
    request = tacit_pb2.ReadCollectionRequest(name=campaign.name)
    tallies: dict[int, list[Tally]] = {}
    n_answers = 0
    with calling(server) as stub:
        for one in stub.ReadCollection(request, metadata=server.metadata):
            channel = campaign.combinations[one.combination].channel
            counts = np.array(one.counts, dtype=np.int64)
            tallies.setdefault(one.combination, []).append(Tally(channel, one.answers, counts))
            n_answers += one.answers
            told(f"reading answers: {len(tallies)} of {len(campaign.combinations)} combinations")
    return CollectionEstimates(campaign, tallies, n_answers // campaign.n_answered)
