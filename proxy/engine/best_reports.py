"""The best report of one count under a user's belief, and the priors that a SELECT gives.

A prior may be a list; the rows of public tables; or an earlier answer, the count of another private
table that its history knows. The last is never bought, and its law is that of its noise: with the
same weight for every count before it was known.

An answer about the same private table is refused as a prior. Both answers may rest on the same
measurements; then the same noise would count twice. The history of a table on a count is
in the answer about it already. Two private tables are measured apart, so their noises are
independent. Whether the earlier count tells anything about the present one is the user's belief.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from cube.refusals import InvalidRequest, TooLarge
from inference import (
    N_COUNTS_MAX,
    N_POINTS_MAX,
    CountPrior,
    Posterior,
    law_under,
)
from planner.belief import N_REPORTED_MAX, Belief, PriorSelect
from planner.sql import Query, not_answered, read_statement
from planner.workload import Fallback, OutputColumn, Part, RequestedTarget, Workload
from proxy.api import Caller, QueryRequest, QueryResult, ReportedCount, one_count
from proxy.engine.answers import reported
from proxy.engine.disclosure import disclosed_rows
from proxy.engine.visibility import VisibleTables
from proxy.tables import shown_instead

COVERED: Final = 1 - 1e-9  # of the law of an earlier answer, by the counts of the prior
KNOWN: Final = RequestedTarget(epsilon_cap=Fraction(0), fallback=Fallback.HISTORY)
PRIOR_HINT: Final = (
    "Give a list of counts and probabilities, a SELECT of counts (and weights) of public tables, "
    "or a SELECT of one count of another private table."
)

Answer = Callable[[QueryRequest], QueryResult]


class BestReports:
    """Computes best reports, from the tables that a caller may see.

    Parameters
    ----------
    seen : VisibleTables
    public : collection of str
        The names of the public tables in outer SQL.
    answer : callable
        Answers a request; may charge.
    """

    def __init__(self, seen: VisibleTables, public: Collection[str], answer: Answer) -> None:
        self._seen, self._public, self._answer = seen, public, answer

    def report(self, request: QueryRequest, belief: Belief) -> tuple[ReportedCount, QueryResult]:
        """Answer one count, and compute the best number to report for it.

        Raises
        ------
        Refused
            Before anything is charged, if the statement is no count or the prior is none.
        """
        workload = self._planned(request)
        name, wanted = one_count(workload)
        table = self._seen.priced(name)
        if isinstance(belief.prior, PriorSelect):
            belief = replace(belief, prior=self.prior(belief.prior, name, request.caller))
        release = self._answer(request)
        (found,) = table.look([wanted])
        (estimate,) = disclosed_rows(shown_instead(table, request.caller), wanted, found)
        if not isinstance(estimate, Posterior):
            raise InvalidRequest(
                "The count has no answer with a law of its error.",
                hint="Ask for it without a fallback.",
            )
        return reported(estimate, belief, workload.parts[0].confidence), release

    def known(self, workload: Workload, caller: Caller) -> Workload:
        """A statement with the priors that its SELECTs give; the same if it has none of these.

        Raises
        ------
        Refused
            As `prior`.
        TooLarge
            If too many counts would be weighed.
        """
        parts = [self._known_part(one, caller) for one in workload.parts]
        is_same = all(one is other for one, other in zip(parts, workload.parts, strict=True))
        return workload if is_same else replace(workload, parts=tuple(parts))

    def _known_part(self, part: Part, caller: Caller) -> Part:
        """A part whose priors are all lists."""
        if not any(_waits(column) for column in part.columns):
            return part
        given: dict[PriorSelect, CountPrior] = {}
        columns = []
        for column in part.columns:
            belief = column.belief
            if belief is not None and isinstance(belief.prior, PriorSelect):
                if belief.prior not in given:
                    given[belief.prior] = self.prior(belief.prior, part.table, caller)
                column = replace(column, belief=replace(belief, prior=given[belief.prior]))  # noqa: PLW2901 - the same, with its prior
            columns.append(column)
        work = sum(one.belief.work for one in columns if one.belief is not None)
        if work * part.n_rows > N_REPORTED_MAX:
            raise TooLarge(
                f"The priors of DP_BEST in {part.n_rows} groups would weigh more than "
                f"{N_REPORTED_MAX} counts.",
                hint="Give a prior of fewer counts, or ask for fewer groups.",
            )
        return replace(part, columns=tuple(columns))

    def prior(self, asked: PriorSelect, table: str, caller: Caller) -> CountPrior:
        """The prior that a SELECT gives, for a count of a private table. Charges nothing.

        Raises
        ------
        Refused
            If it is no SELECT of public tables or of one count of another table, or if the history
            does not know that count.
        """
        request = QueryRequest(sql=asked.sql, target=KNOWN, caller=caller)
        workload = self._planned(request)
        if not workload.tables:
            named = () if workload.outer is None else workload.outer.public
            if not set(named) <= set(self._public):
                raise InvalidRequest(
                    "The SELECT of the prior reads a table that is not public.", hint=PRIOR_HINT
                )
            return prior_of_rows(self._answer(request).data)
        name, wanted = one_count(workload)
        if name == table:
            raise InvalidRequest(
                f"The prior is an answer about {name}, as the count is.",
                hint="Both may rest on the same noise, and the history of the count is "
                "in its answer already. Take another prior, or an answer about another table.",
            )
        known = self._seen.priced(name)
        self._answer(request)  # refuses, as it would any caller, what may not be had for nothing
        (found,) = known.look([wanted])
        (estimate,) = disclosed_rows(shown_instead(known, caller), wanted, found)
        if not isinstance(estimate, Posterior):
            raise InvalidRequest(
                f"The history of {name} does not know the count that is the prior.",
                hint="Ask for that count first; a prior is never bought.",
            )
        return prior_of_answer(estimate)

    def _planned(self, request: QueryRequest) -> Workload:
        if not isinstance(statement := read_statement(request.sql), Query):
            raise not_answered(statement.verb)
        return self._seen.planner.plan(request.sql, request.target, request.parameters)


def _waits(column: OutputColumn) -> bool:
    """Whether a column has a prior that a SELECT gives."""
    return column.belief is not None and isinstance(column.belief.prior, PriorSelect)


def prior_of_rows(data: pa.Table) -> CountPrior:
    """The prior that rows are: counts, each as probable as it is frequent, or counts and weights.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    if data.num_columns not in (1, 2):
        raise InvalidRequest(
            f"The SELECT of the prior gives {data.num_columns} columns.",
            hint="Give one column of counts, or counts and their weights.",
        )
    if data.num_rows > N_POINTS_MAX:
        raise TooLarge(
            f"The SELECT of the prior gives more than {N_POINTS_MAX} rows.",
            hint="Group them into fewer counts.",
        )
    weights: dict[int, float] = {}
    counts = data.column(0).to_pylist()
    for place, count in enumerate(counts):
        weight = 1.0 if data.num_columns == 1 else data.column(1)[place].as_py()
        try:
            whole = float(count)
            added = float(weight)
        except (TypeError, ValueError):
            whole = added = math.nan
        if not (whole.is_integer() and 0 <= whole <= N_COUNTS_MAX and 0 <= added < math.inf):
            raise InvalidRequest(
                f"Row {place + 1} of the prior is no count with a weight.",
                hint=f"Counts are whole numbers from 0 to {N_COUNTS_MAX}, and weights are not "
                "negative.",
            )
        weights[int(whole)] = weights.get(int(whole), 0.0) + added
    return _weighed(weights)


def prior_of_answer(estimate: Posterior) -> CountPrior:
    """The law of a true count given its answer: the prior for another count.

    Parameters
    ----------
    estimate : Posterior
        In records; no count beyond its public range is possible.

    Raises
    ------
    TooLarge
        If so little is known that too many counts are possible.
    """
    reach = estimate.half_width(COVERED)
    low = max(0, math.floor(estimate.value - reach))
    high = max(0, math.ceil(min(estimate.value + reach, estimate.high, N_COUNTS_MAX)))
    low = min(low, high)
    if high - low >= N_POINTS_MAX:
        raise TooLarge(
            f"The answer that is the prior allows more than {N_POINTS_MAX} counts.",
            hint="Ask for it with a smaller half_width first.",
        )
    counts = np.arange(low, high + 1, dtype=np.float64)
    law = law_under(estimate, counts, np.full(counts.size, 1 / counts.size))
    return _weighed(dict(zip(range(low, high + 1), law.tolist(), strict=True)))


def _weighed(weights: Mapping[int, float]) -> CountPrior:
    try:
        return CountPrior.of_weights(weights)
    except ValueError:
        raise InvalidRequest(
            "The SELECT of the prior gives no count with a weight above 0.", hint=PRIOR_HINT
        ) from None
