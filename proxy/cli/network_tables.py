"""From a table of a server to the tables that a network is learned from.

Of a private table, counts by a few columns, which may cost; of a synthetic table, its rows, for
nothing; of a collection of randomised answers, the tables that they show, for nothing as well. What
a request asks for is checked before it is made. Nothing is learned here.

How uncertain a table of a collection is, only those say who were asked about all of its columns:
margins that are known better, from others, hide how noisy the rest of it is. What tables of
independent columns show is found by drawing them, randomising them through the same channels, and
estimating them in the same way.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge, UnknownName
from cube.runtime import cached_property
from local_dp.campaign import Campaign, read_campaign
from local_dp.estimates.collection import AgreeingTable, CollectionEstimates
from local_dp.estimates.shares import Tally
from local_dp.estimates.simulated import AnsweredTable
from planner.sql.messages import listed
from planner.workload import Consistency
from proxy.api.requests import STREAM
from proxy.cli.marginals import ask
from proxy.cli.shared import synth_client
from proxy.cli.shared.client import ServerAddress, calling, list_tables
from proxy.cli.shared.failures import Declined
from proxy.cli.shared.rendering import general
from proxy.collections.status import N_PLACES_MAX, n_places_of
from proxy.protocol import tacit_pb2
from synthesis.fitting import projected
from synthesis.networks.score import N_CELLS_MAX, N_NULL_DRAWS
from synthesis.networks.source import MeasuredTables, NoisyCounts, RowTables, ShareTable
from synthesis.tables import Column, Floats

N_TABLES_MAX = 256  # of one request
SOURCE_MODEL = "model"  # of a table that was not measured, in a reply
BUY = "Buy the tables of counts with --epsilon above 0."
MEASURE = "measure"  # the kind of a column that is added up, and not counted by


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for counts of a private table.

    Parameters
    ----------
    sets : tuple of tuple of str
        The columns of each table of counts.
    epsilon : str
        The most that it may cost; 0 to use only what is known.
    """

    table: str
    sets: tuple[tuple[str, ...], ...]
    epsilon: str

    def __str__(self) -> str:
        """What is asked for, and the most that it costs."""
        width = len(self.sets[0])
        what = f"{len(self.sets)} tables of {width} columns of {self.table}"
        if _is_nothing(self.epsilon):
            return f"Reads {what} from what is known. Free."
        return f"Buys {what}, for at most epsilon {self.epsilon} together."


def table_called(server: ServerAddress, name: str) -> tacit_pb2.Table:
    """The table of this name; a synthetic one also by the name of its source and its own.

    Raises
    ------
    UnknownName
    InvalidRequest
        If several have the name.
    """
    wanted = name.lower()
    tables = list_tables(server)
    found = [
        one
        for one in tables
        if wanted in {one.name.lower(), f"{one.synthetic_of}.{one.name}".lower()}
    ]
    if not found:
        raise UnknownName(f"There is no table {name!a}.", hint="`tacit tables` shows all of them.")
    if len(found) > 1:
        raise InvalidRequest(
            f"Several tables are called {name!a}.",
            hint=f"Write {found[0].synthetic_of}.{found[0].name}.",
        )
    if found[0].kind == STREAM:
        raise InvalidRequest(
            f"{found[0].name} is a stream: it counts users, and has no columns that depend on each "
            "other.",
            hint=(
                "A network can be learned from a private table, a collection or a synthetic table."
            ),
        )
    return found[0]


def chosen_columns(table: tacit_pb2.Table, names: Sequence[str]) -> list[tacit_pb2.Column]:
    """The columns of these names, or all that can be counted by; at least two.

    Raises
    ------
    UnknownName, InvalidRequest
    """
    by_name = {one.name.lower(): one for one in table.columns}
    unknown = [name for name in names if name.lower() not in by_name]
    if unknown:
        raise UnknownName(
            f"{table.name} has no column {unknown[0]!a}.",
            hint=f"`tacit tables` shows the columns of {table.name}.",
        )
    chosen = [by_name[name] for name in dict.fromkeys(name.lower() for name in names)]
    summed = [one.name for one in chosen if one.kind == MEASURE and not table.synthetic_of]
    if summed:
        raise InvalidRequest(
            f"{summed[0]} is a measure: it can be summed, but not counted by.",
            hint="Leave it out of --columns.",
        )
    chosen = chosen or [one for one in table.columns if one.kind != MEASURE]
    if len(chosen) < 2:  # noqa: PLR2004 - an arc has two ends
        raise InvalidRequest("A network needs two columns or more.", hint="Name them in --columns.")
    return chosen


def check_free(table: tacit_pb2.Table, epsilon: str) -> None:
    """Refuse an epsilon for what costs nothing.

    Raises
    ------
    InvalidTarget
    """
    if not _is_nothing(epsilon):
        what = "a synthetic table" if table.synthetic_of else "a collection"
        raise InvalidTarget(
            f"{table.name} is {what}, which has no budget: --epsilon buys nothing from it.",
            hint="Leave --epsilon out: learning from it is free.",
        )


def asked_of(
    table: tacit_pb2.Table, columns: Sequence[tacit_pb2.Column], width: int, epsilon: str
) -> Asked:
    """The request for all tables of so many of the columns.

    Raises
    ------
    TooLarge
        If there are too many tables, or one is larger than any that is learned from.
    """
    sets = list(combinations(columns, width))
    if len(sets) > N_TABLES_MAX:
        raise TooLarge(
            f"{len(columns)} columns have {len(sets)} tables of {width}; at most {N_TABLES_MAX} "
            "can be asked for at a time.",
            hint="Name fewer in --columns, or lower --degree.",
        )
    for one in sets:
        n_cells = math.prod(column.n_levels for column in one)
        if n_cells > N_CELLS_MAX:
            names = ", ".join(column.name for column in one)
            raise TooLarge(
                f"The table of {names} has {n_cells} cells; at most {N_CELLS_MAX} are allowed.",
                hint="Leave out the column with most levels: name the others in --columns.",
            )
    return Asked(table.name, tuple(tuple(one.name for one in own) for own in sets), epsilon)


Levels: TypeAlias = dict[str, tuple[str, ...]]  # the names of each column's levels


def measured_tables(
    server: ServerAddress, asked: Asked, told: Callable[[str], None]
) -> tuple[MeasuredTables, Levels, tacit_pb2.MarginalsSummary]:
    """The tables of counts, the names of their levels, and what they cost.

    Raises
    ------
    InvalidRequest
        If some are not known, and were not to be bought.
    """
    request = tacit_pb2.MarginalsRequest(
        table=asked.table,
        sets=[tacit_pb2.AttributeSet(columns=one) for one in asked.sets],
        budget=asked.epsilon,
        # Each table with the noise that it has: once they agree, their errors are not independent.
        consistency=Consistency.RAW.value,
    )
    try:
        data, summary = ask(server, request, told)
    except Declined as refusal:
        if _is_nothing(asked.epsilon) and refusal.code == InvalidRequest.code:
            raise InvalidRequest(
                f"Nothing was measured for some of these columns of {asked.table}.", hint=BUY
            ) from None
        raise
    return MeasuredTables(counts_in(data, asked.sets)), levels_in(data, asked.sets), summary


def levels_in(data: pa.Table, sets: Sequence[Sequence[str]]) -> Levels:
    """The names of each column's levels in a reply, in the order of its tables."""
    found: dict[str, dict[str, None]] = {}
    places = data.column("marginal").to_pylist()
    for place, keys in zip(places, data.column("keys").to_pylist(), strict=True):
        for name, key in zip(sets[place], keys, strict=True):
            found.setdefault(name, {})[general(key)] = None
    return {name: tuple(own) for name, own in found.items()}


def counts_in(data: pa.Table, sets: Sequence[Sequence[str]]) -> list[NoisyCounts]:
    """The tables of counts in a reply."""
    number = data.column("marginal").to_numpy()
    missing = sorted(
        {
            " x ".join(sets[place])
            for place, source in zip(number, data.column("source").to_pylist(), strict=True)
            if source == SOURCE_MODEL
        }
    )
    if missing:
        more = f" and {len(missing) - 1} more tables" if len(missing) > 1 else ""
        raise InvalidRequest(
            f"Nothing was measured for {missing[0]}{more}.",
            hint=BUY,
        )
    values = data.column("value").to_numpy()
    errors = data.column("standard_error").to_numpy()
    keys = data.column("keys").to_pylist()
    found = []
    for place, names in enumerate(sets):
        rows = np.flatnonzero(number == place)
        shape = tuple(len({keys[row][axis] for row in rows}) for axis in range(len(names)))
        variance = float((errors[rows] ** 2).mean())
        found.append(NoisyCounts(tuple(names), values[rows].reshape(shape), variance))
    return found


def synthetic_rows(
    server: ServerAddress, table: tacit_pb2.Table, columns: Sequence[tacit_pb2.Column]
) -> tuple[RowTables, Levels]:
    """The rows of a synthetic table; the levels of a column are the values that they have."""
    levels: Levels = {}
    rows = synth_client.rows(server, f"{table.synthetic_of}.{table.name}")
    codes, found = [], []
    for column in columns:
        encoded = rows.column(column.name).combine_chunks().dictionary_encode("encode")
        codes.append(encoded.indices.to_numpy(zero_copy_only=False))
        found.append(Column(column.name, max(1, len(encoded.dictionary))))
        levels[column.name] = tuple(map(general, encoded.dictionary.to_pylist()))
    return RowTables(found, np.stack(codes, axis=1).astype(np.int64)), levels


def _is_nothing(epsilon: str) -> bool:
    """Whether an epsilon is written as 0; what is no number is for the server to refuse."""
    try:
        return float(epsilon) == 0
    except ValueError:
        return False


N_COLLECTED_CELLS_MAX: Final = 2**11  # of a table, as for the tests of independence of a collection
N_SIMULATED_MAX: Final = 2**24  # places times cells of one table: a few seconds, 1 GB
FEWER: Final = "Leave out the column with most levels: name the others in --columns."
WORK_OF_PLACE: Final = 75  # for each cell, in the units of `synthesis.networks.learned`


class AnsweredSource:
    """The tables of a collection, as networks are learned from them.

    Parameters
    ----------
    names : sequence of str
        Attributes; some combination with answers has each `width_max` of them together.

    Raises
    ------
    InvalidRequest
        If no respondent has answered about some of them together.
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
        difference between two groups of respondents. It leaves what columns say about each other as
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
        """What combinations with these columns say about them; made anew, as it is large."""
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
            f"The answers to {campaign.name} are counted at {n_places} places; a network can be "
            f"learned from at most {N_PLACES_MAX}."
        )


def check_together(
    campaign: Campaign, names: Sequence[str], width: int, covered: Sequence[Scope]
) -> None:
    """Refuse columns if some were not asked about together, or have no answers yet.

    Raises
    ------
    InvalidRequest
    """
    if not covered:
        raise InvalidRequest(f"No one has answered {campaign.name} yet.")
    for scope in combinations(sorted(names), width):
        if not any(set(scope) <= set(one) for one in covered):
            known = "; ".join(", ".join(one) for one in covered)
            if campaign.covering(scope):
                raise InvalidRequest(
                    f"No one has answered about {listed(scope)} yet.",
                    hint=f"Answered until now: {known}.",
                )
            raise InvalidRequest(
                f"No one was asked about {listed(scope)} together.", hint=f"Asked about: {known}."
            )


def simulation(campaign: Campaign, names: Sequence[str]) -> float:
    """The work of a table of some columns, in the units of `synthesis.networks.learned`.

    Raises
    ------
    TooLarge
        If it has too many cells, or its answers are counted at too many places.
    """
    scope, n_cells = tuple(sorted(names)), campaign.n_cells(tuple(sorted(names)))
    if n_cells > N_COLLECTED_CELLS_MAX:
        raise TooLarge(
            f"The table of {', '.join(scope)} has {n_cells} cells; for a collection, at most "
            f"{N_COLLECTED_CELLS_MAX} are allowed.",
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
