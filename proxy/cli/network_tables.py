"""From a table of a server to the tables that a network is learned from.

Of a private table, counts by a few columns, which may cost; of a synthetic table, its rows, for
nothing. What a request asks for is checked before it is made. Collections are `network_answers`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from cube.refusals import InvalidRequest, InvalidTarget, TooLarge, UnknownName
from planner.consistent_sets import Consistency
from proxy.api.requests import STREAM
from proxy.cli import synth_client
from proxy.cli.client import ServerAddress, list_tables
from proxy.cli.failures import Declined
from proxy.cli.marginals import ask
from proxy.protocol import tacit_pb2
from synthesis.networks.score import N_CELLS_MAX
from synthesis.networks.source import MeasuredTables, NoisyCounts, RowTables
from synthesis.tables import Column

N_TABLES_MAX = 256  # of one request
SOURCE_MODEL = "model"  # of a table that was not measured, in a reply
BUY = "Buy the tables of counts with --epsilon above 0."
MEASURE = "measure"  # the kind of a column that is added up, and not counted by


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for counts of a private table.

    Parameters
    ----------
    table : str
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
            hint="A network is learned of a private table, a collection or a synthetic table.",
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
            f"{summed[0]} is a measure: it is added up, and not counted by.",
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
            f"{table.name} is {what}, which has no budget: --epsilon buys nothing of it.",
            hint="Leave --epsilon out: to learn from it is free.",
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
            f"{len(columns)} columns have {len(sets)} tables of {width}; {N_TABLES_MAX} are asked "
            "for at a time.",
            hint="Name fewer in --columns, or lower --degree.",
        )
    for one in sets:
        n_cells = math.prod(column.n_levels for column in one)
        if n_cells > N_CELLS_MAX:
            names = ", ".join(column.name for column in one)
            raise TooLarge(
                f"The table of {names} has {n_cells} cells; {N_CELLS_MAX} are learned from.",
                hint="Leave out the column with most levels: name the others in --columns.",
            )
    return Asked(table.name, tuple(tuple(one.name for one in own) for own in sets), epsilon)


def measured_tables(
    server: ServerAddress, asked: Asked, told: Callable[[str], None]
) -> tuple[MeasuredTables, tacit_pb2.MarginalsSummary]:
    """The tables of counts, and what they cost.

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
                f"Nothing was measured of some of these columns of {asked.table}.", hint=BUY
            ) from None
        raise
    return MeasuredTables(counts_in(data, asked.sets)), summary


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
            f"Nothing was measured of {missing[0]}{more}.",
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
) -> RowTables:
    """The rows of a synthetic table; the levels of a column are the values that they have."""
    rows = synth_client.rows(server, f"{table.synthetic_of}.{table.name}")
    codes, found = [], []
    for column in columns:
        encoded = rows.column(column.name).combine_chunks().dictionary_encode("encode")
        codes.append(encoded.indices.to_numpy(zero_copy_only=False))
        found.append(Column(column.name, max(1, len(encoded.dictionary))))
    return RowTables(found, np.stack(codes, axis=1).astype(np.int64))


def _is_nothing(epsilon: str) -> bool:
    """Whether an epsilon is written as 0; what is no number is for the server to refuse."""
    try:
        return float(epsilon) == 0
    except ValueError:
        return False
