"""The tables that a network is learned from, whatever kind of table it is of, and what they cost.

That learning from them will take a minute at most is checked before anything is bought or asked
for; of a synthetic table, whose levels are its rows', before anything is learned.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cube.refusals import InvalidRequest, TooLarge
from proxy.api.requests import RANDOMIZED
from proxy.cli.client import ServerAddress
from proxy.cli.marginals import summary_text
from proxy.cli.network_answers import (
    AnsweredSource,
    campaign_of,
    check_readable,
    check_together,
    read_answers,
    simulation,
)
from proxy.cli.network_tables import (
    asked_of,
    check_free,
    measured_tables,
    synthetic_rows,
)
from proxy.protocol import tacit_pb2
from synthesis.networks.exact_search import N_COLUMNS_MAX
from synthesis.networks.learned import Method
from synthesis.networks.source import TableSource
from synthesis.networks.work import N_WORK_MAX, Reading, work

DEGREE_OF_ROWS: Final = 3  # of a synthetic table, whose tables cost nothing


@dataclass(frozen=True, slots=True)
class Search:
    """How a network is searched.

    Parameters
    ----------
    method : Method
    degree : int
        The most parents of a column.
    """

    method: Method
    degree: int

    @classmethod
    def of(
        cls, method: Method, degree: int | None, table: tacit_pb2.Table, n_columns: int
    ) -> "Search":
        """The search that was asked for; without a degree, the usual one of such a table.

        Raises
        ------
        TooLarge, InvalidRequest
        """
        if method is Method.EXACT and n_columns > N_COLUMNS_MAX:
            raise TooLarge(
                f"{n_columns} columns are too many for an exact search: at most {N_COLUMNS_MAX}.",
                hint="Name fewer in --columns, or use --method hill-climbing.",
            )
        if method is Method.CHOW_LIU:
            if degree is not None and degree > 1:
                raise InvalidRequest(
                    "In a tree, a column has one parent at most.",
                    hint="Leave out --degree, or use another --method.",
                )
            return cls(method, 1)
        if degree is None:
            degree = DEGREE_OF_ROWS if table.synthetic_of else 1
        return cls(method, min(degree, n_columns - 1))

    def check(self, sizes: Sequence[int], reading: Reading, *, is_noisy: bool = True) -> None:
        """Refuse what would take too long.

        Raises
        ------
        TooLarge
        """
        needed = work(
            sizes, degree=self.degree, method=self.method, is_noisy=is_noisy, reading=reading
        )
        if needed > N_WORK_MAX:
            raise TooLarge(
                f"To learn a network of these {len(sizes)} columns would take about "
                f"{math.ceil(needed / N_WORK_MAX)} minutes; one is allowed.",
                hint="Name fewer in --columns, lower --degree, or use another --method.",
            )


@dataclass(frozen=True, slots=True)
class Told:
    """What a person is told before there is a network.

    Parameters
    ----------
    step, line : callable
        Of what is done now, and of what stays to be read.
    """

    step: Callable[[str], None]
    line: Callable[[str], None]


def source_of(  # noqa: PLR0913 - what is learned, how, for how much, and who is told
    server: ServerAddress,
    table: tacit_pb2.Table,
    columns: Sequence[tacit_pb2.Column],
    search: Search,
    *,
    epsilon: str,
    told: Told,
) -> tuple[TableSource, str]:
    """The tables that a network is learned from, and what is to be said of their cost.

    Raises
    ------
    Refused, Declined
    """
    if table.synthetic_of:
        check_free(table, epsilon)
        told.step("reading the rows")
        rows = synthetic_rows(server, table, columns)
        sizes = [one.size for one in rows.columns]
        search.check(sizes, lambda scope: rows.n_rows * len(scope), is_noisy=False)
        return (
            rows,
            f"Learned from the rows of {table.name}: the network is that of its model. Free.",
        )
    if table.kind == RANDOMIZED:
        check_free(table, epsilon)
        return _answers(server, table, columns, search, told)
    asked = asked_of(table, columns, search.degree + 1, epsilon)
    search.check([one.n_levels for one in columns], lambda _: 0.0)
    told.line(str(asked))
    source, summary = measured_tables(server, asked, told.step)
    return source, summary_text(summary).plain


def _answers(
    server: ServerAddress,
    table: tacit_pb2.Table,
    columns: Sequence[tacit_pb2.Column],
    search: Search,
    told: Told,
) -> tuple[TableSource, str]:
    campaign = campaign_of(server, table.name)
    names = sorted(one.name for one in columns)
    check_readable(campaign)
    asked = [one.scope for one in campaign.combinations]
    check_together(campaign, names, search.degree + 1, asked)
    sizes = [len(campaign.by_name[name].levels) for name in names]
    search.check(sizes, lambda scope: simulation(campaign, [names[place] for place in scope]))
    estimates = read_answers(server, campaign, told.step)
    source = AnsweredSource(estimates, names, width_max=search.degree + 1)
    return source, f"Learned from what {estimates.n_respondents} respondents answered. Free."
