"""Statements of two rounds: a subquery's noisy answer is bought, and put in where rows are chosen.

    SELECT COUNT(*) FROM loans WHERE amount > (SELECT AVG(amount) FROM loans)

Rows cannot be chosen by an answer that is not there yet. So the subquery is asked first, by itself,
and its answer is a constant of the statement from then on: it is public by then, and history.
Before it is bought, the statement is priced with a value that stands in for it, since the price of
a count does not depend on where its condition cuts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import pyarrow as pa

from cube.axis import LevelValue
from cube.refusals import Refused, TooLarge, UnsupportedSql
from planner.workload import AskedFirst, GivenAnswers, RequestedTarget, Workload
from proxy.api import QueryRequest, QueryResult, arrow_type, with_receipt
from proxy.engine.answers import smallest_cap

N_FIRST_MAX: Final = 8  # subqueries of one statement, those inside others among them
N_VALUES_MAX: Final = 10_000  # of one of them
N_SHOWN_MAX: Final = 5
ASKED_FIRST: Final = (
    "Asked first: its noisy answer is put into the statement. This plan prices the statement "
    "with a stand-in value."
)
_GIVEN: Final = "the answers are for this value, and their intervals do not include its noise."
LEAST_CAP: Final = Fraction(1, 2**40)  # what is left of a cap that is used up: free answers fit


@dataclass(frozen=True, slots=True, eq=False)
class FirstAnswer:
    """A subquery that was asked first, with its answer."""

    sql: str
    result: QueryResult
    values: tuple[LevelValue, ...]

    @property
    def note(self) -> str:
        """The value that was put in, for the receipt and for refusals."""
        shown = ", ".join(map(_shown, self.values[:N_SHOWN_MAX])) or "no rows"
        more = len(self.values) - N_SHOWN_MAX
        rest = f" and {more} more" if more > 0 else ""
        return f"({self.sql}) was asked first, and gave {shown}{rest}{self._ends}"

    @property
    def _ends(self) -> str:
        receipt = self.result.receipt
        if receipt is None or len(receipt.columns) != 1 or len(self.values) != 1:
            return ""
        (column,) = receipt.columns
        low, high = column.low[0], column.high[0]
        return f" (between {low:.6g} and {high:.6g} with confidence {column.confidence:g})"


def asked_for(request: QueryRequest, first: AskedFirst, cap: Fraction | None) -> QueryRequest:
    """The request for a subquery, which may cost as much as `cap`."""
    target = first.requested.over(RequestedTarget(epsilon_cap=cap))
    return replace(request, sql=first.sql, target=target, parameters=(), given=())


def cap_of_next(workloads: Sequence[Workload], answers: Sequence[FirstAnswer]) -> Fraction | None:
    """What the next of a statement's workloads may cost, if the statement names a cost.

    All that is left; but what names no target spends what it may, so each has an equal share.
    """
    cap = smallest_cap(workloads[-1].parts)
    if cap is None:
        return None
    left = max(cap - spent_on(answers), LEAST_CAP)
    shares = all(part.is_default for one in workloads for part in one.parts)
    return min(left, cap / len(workloads)) if shares else left


def given(request: QueryRequest, sql: str, values: Sequence[LevelValue]) -> QueryRequest:
    """The same request, with the answer to one of its subqueries."""
    if len(request.given) >= N_FIRST_MAX:
        raise TooLarge(
            f"More than {N_FIRST_MAX} subqueries have to be asked first.",
            hint="Ask some of them by themselves, and write their answers here.",
        )
    more: GivenAnswers = ((sql, tuple(values)),)
    return replace(request, given=(*request.given, *more))


def capped(request: QueryRequest, cap: Fraction | None) -> QueryRequest:
    """The same request, which may cost no more than what is left of a cap."""
    if cap is None:
        return request
    left = RequestedTarget(epsilon_cap=max(cap, LEAST_CAP))
    return replace(request, target=request.target.over(left))


def stand_ins(first: AskedFirst, workload: Workload, schema: pa.Schema) -> tuple[LevelValue, ...]:
    """Values like those that a subquery will give: levels of its key, or a number in its range.

    Raises
    ------
    UnsupportedSql, TooLarge
        If it is sure to give too many values or columns.
    """
    kind = _only_column(schema)
    if workload.outer is None:
        check_number(first, workload.parts[0].n_rows)
    found = _alike(workload, kind)
    return found if first.is_list else found[:1]


def _alike(workload: Workload, kind: pa.DataType) -> tuple[LevelValue, ...]:
    for part in workload.parts:
        for key in part.keys:
            if arrow_type(key.sql_type) == kind:
                return tuple(dict.fromkeys(key.values))[:N_VALUES_MAX]
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return (None,)
    for part in workload.parts:
        for answer in part.answers:
            if answer.high - answer.low < float("inf"):
                return ((answer.low + answer.high) / 2,)
    return (0,)


def answer_of(first: AskedFirst, result: QueryResult) -> FirstAnswer:
    """The values of the only column of a subquery."""
    _only_column(result.data.schema)
    check_number(first, result.data.num_rows)
    values = tuple(dict.fromkeys(result.data.column(0).to_pylist()))
    return FirstAnswer(first.sql, result, values)


def check_number(first: AskedFirst, n_values: int) -> None:
    """Refuse a subquery that gives more values than there is place for."""
    if n_values > 1 and not first.is_list:
        raise UnsupportedSql(
            f"({first.sql}) gives {n_values} rows where one value is needed.",
            hint="Aggregate what it gives, as in SELECT MAX(x) FROM (SELECT ..) AS s, or compare "
            "with IN.",
            position=first.position,
        )
    if n_values > N_VALUES_MAX:
        raise TooLarge(
            f"({first.sql}) gives {n_values} values; {N_VALUES_MAX} are allowed.",
            hint="Add a HAVING or a LIMIT to it.",
        )


def with_first(result: QueryResult, answers: Sequence[FirstAnswer]) -> QueryResult:
    """The statement's result, with what was asked first in its receipt."""
    if result.receipt is None:
        return result
    spent = sum((_spent(one.result) for one in answers), Fraction(0))
    notes = [f"{one.note}; {_GIVEN}" for one in answers]
    inside = [one.result.receipt for one in answers if one.result.receipt is not None]
    warnings = [*(one for inner in inside for one in inner.warnings), *result.receipt.warnings]
    caveats = [*(one for inner in inside for one in inner.caveats), *notes]
    told = (
        note
        for inner in inside
        for note in inner.notes
        if note.endswith(_GIVEN) or note in (*inner.warnings, *inner.caveats)
    )
    notes = [*told, *notes]
    receipt = replace(
        result.receipt,
        epsilon_spent=result.receipt.epsilon_spent + spent,
        notes=tuple(dict.fromkeys((*notes, *result.receipt.notes))),
        warnings=tuple(dict.fromkeys(warnings)),
        caveats=tuple(dict.fromkeys((*caveats, *result.receipt.caveats))),
    )
    return QueryResult(with_receipt(result.data, receipt), receipt)


def spent_on(answers: Sequence[FirstAnswer]) -> Fraction:
    """What the subqueries cost."""
    return sum((_spent(one.result) for one in answers), Fraction(0))


def say_what_is_known(refusal: Refused, answers: Sequence[FirstAnswer]) -> None:
    """Let a refusal of the statement say what was answered before, which is history."""
    if answers:
        known = " ".join(f"{one.note}, which is free now." for one in answers)
        refusal.hint = known if refusal.hint is None else f"{refusal.hint} {known}"


def _spent(result: QueryResult) -> Fraction:
    return Fraction(0) if result.receipt is None else result.receipt.epsilon_spent


def _only_column(schema: pa.Schema) -> pa.DataType:
    if len(schema) != 1:
        raise UnsupportedSql(
            f"A subquery with {len(schema)} columns stands where values are needed.",
            hint="Select one column in it.",
        )
    return schema.field(0).type


def _shown(value: LevelValue) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "NULL" if value is None else str(value)
