"""From a statement's order to a request: names resolved in the public schema, limits checked.

Reads only the order, the schema and the limits.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypedDict

from cube.query import Scope
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge, UnknownName
from cube.schema import Schema
from cube.statistic import N_PARENTS_MAX, Score
from planner.planner import workload_scopes
from planner.sql import CreateSynthetic, listed, shortened, suggestion
from proxy.config import SyntheticLimits
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.request import Method, SynthesisRequest

TEXT_BYTES = 4  # what Arrow stores for a text in addition to its characters
VALUE_BYTES = 8  # at most, of any other value
EVALUATE_MIN = Fraction(1, 1000)  # as for a table: less tells nothing
EVALUATE_MAX = 100  # beyond it nothing is private, and a typing error is likely


def request_of(order: CreateSynthetic, schema: Schema, limits: SyntheticLimits) -> SynthesisRequest:
    """The request that an order stands for.

    Raises
    ------
    InvalidRequest, InvalidTarget, UnknownName, TooLarge
    """
    methods = [method.value for method in Method]
    if order.method is not None and order.method not in methods:
        raise InvalidRequest(
            f"There is no method {shortened(order.method)!a}.",
            hint=suggestion(order.method, methods) or f"Methods are {listed(methods)}.",
        )
    for name, epsilon in (("epsilon", order.epsilon), ("evaluate", order.evaluate)):
        if epsilon < 0:
            raise InvalidTarget(f"{name} cannot be negative.", hint="0 costs nothing.")
    if order.evaluate and not EVALUATE_MIN <= order.evaluate <= EVALUATE_MAX:
        raise InvalidTarget(
            f"evaluate is from {float(EVALUATE_MIN):g} to {EVALUATE_MAX}.",
            hint="0.05 is often enough; leave it out to buy no evaluation.",
        )
    if order.delta is not None and not 0 < order.delta < 1:
        raise InvalidTarget(
            "delta must be a probability.", hint="Write it like delta => 1e-9, or leave it out."
        )
    method = Method.AUTO if order.method is None else Method(order.method)
    columns = tuple(_column(name, schema) for name in order.columns)
    if len(set(columns)) != len(columns):
        raise InvalidRequest("A column is named twice.", hint="Name each column once.")
    if order.seed is not None and order.seed < 0:
        raise InvalidRequest("A seed cannot be negative.", hint="Use any other whole number.")
    _check_size(order.n_rows, columns, schema, limits)
    target, workload = _purpose(order, method, columns, schema)
    return SynthesisRequest(
        table=schema.table,
        epsilon=order.epsilon,
        method=method,
        columns=columns,
        n_rows=order.n_rows,
        seed=order.seed,
        delta=order.delta,
        target=target,
        workload=workload,
        evaluate=order.evaluate,
        **_network_settings(order, method),
    )


def named_columns(record: SyntheticRecord, schema: Schema) -> tuple[str, ...]:
    """A synthetic table's columns, if its source still declares them; UnknownName if not."""
    return tuple(_column(name, schema) for name, _ in record.columns)


def named(name: str, names: Sequence[str]) -> str | None:
    """The name that a text refers to, exactly or ignoring letter case."""
    if name in names:
        return name
    return {known.casefold(): known for known in names}.get(name.casefold())


class _NetworkSettings(TypedDict, total=False):
    """The settings that an order gives; the method's defaults apply to the rest."""

    score: Score
    degree: int
    hierarchies: bool


def _network_settings(order: CreateSynthetic, method: Method) -> _NetworkSettings:
    asked = _NetworkSettings()
    if order.score is not None:
        scores = [score.value for score in Score]
        if order.score.upper() not in scores:
            raise InvalidRequest(
                f"There is no score {shortened(order.score)!a}.",
                hint=f"Scores are {listed(scores)}.",
            )
        asked["score"] = Score(order.score.upper())
    if order.degree is not None:
        if not 0 <= order.degree <= N_PARENTS_MAX:
            raise InvalidTarget(
                f"degree must be a whole number from 0 to {N_PARENTS_MAX}.",
                hint="Write it like degree => 3.",
            )
        asked["degree"] = order.degree
    if order.hierarchies is not None:
        asked["hierarchies"] = order.hierarchies
    if asked and method is not Method.PRIVBAYES:
        raise InvalidRequest(
            f"The method {method} has no setting {' or '.join(asked)}.",
            hint="Use method => 'privbayes', or leave the setting out.",
        )
    return asked


def _purpose(
    order: CreateSynthetic, method: Method, columns: Sequence[str], schema: Schema
) -> tuple[tuple[str, ...], tuple[Scope, ...]]:
    """What the rows are for: the columns to be learned, and those of each query."""
    said = [name for name in ("target", "workload") if getattr(order, name)]
    if said and method is Method.PRIVBAYES:
        raise InvalidRequest(
            f"The method {method} has no {' or '.join(said)}.",
            hint="Use method => 'auto', or leave it out.",
        )
    target = tuple(dict.fromkeys(_column(name, schema) for name in order.target))
    workload = () if order.workload is None else workload_scopes(order.workload, schema)
    kept = columns or [axis.name for axis in schema.axes]
    for name in target:
        if name not in kept:
            raise InvalidRequest(
                f"The target {name} is not among the columns.", hint=f"They are {listed(kept)}."
            )
    for name in sorted(set().union(*workload)):
        if name not in kept:
            raise InvalidRequest(
                f"The workload needs {name}, which is not among the columns.",
                hint=f"They are {listed(kept)}.",
            )
    return target, workload


def _column(name: str, schema: Schema) -> str:
    names = [axis.name for axis in schema.axes]
    found = named(name, names)
    if found is None:
        raise UnknownName(
            f"{schema.table} has no column {shortened(name)!a}.",
            hint=suggestion(name, names) or f"It has {listed(names)}.",
        )
    return found


def _check_size(
    n_rows: int | None, columns: Sequence[str], schema: Schema, limits: SyntheticLimits
) -> None:
    """Refuse a request whose rows could become too large, whatever is drawn."""
    if n_rows is not None and n_rows < 1:
        raise InvalidRequest("A table must have at least one row.", hint="Request more rows.")
    if n_rows is not None and n_rows > limits.n_rows:
        raise TooLarge(
            f"{n_rows} rows are more than the {limits.n_rows} that a synthetic table may have "
            "here.",
            hint=f"Use rows => {limits.n_rows}.",
        )
    axes = [axis for axis in schema.axes if not columns or axis.name in columns]
    n_rows_max = min(limits.n_rows, schema.n_records_max) if n_rows is None else n_rows
    n_bytes = n_rows_max * sum(_bytes_of(axis.levels) for axis in axes)
    if n_bytes > limits.n_bytes:
        raise TooLarge(
            f"The rows could take {n_bytes} bytes; {limits.n_bytes} are allowed.",
            hint="Request fewer rows or columns.",
        )


def _bytes_of(levels: Sequence[object]) -> int:
    """The most bytes that one value of a column takes."""
    texts = [len(level.encode()) for level in levels if isinstance(level, str)]
    return TEXT_BYTES + max(texts) if texts else VALUE_BYTES
