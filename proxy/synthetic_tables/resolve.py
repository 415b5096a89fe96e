"""From a statement's order to a request: names resolved in the public schema, limits checked.

Reads only the order, the schema, the limits, and public tables, which say the groups of a
category's levels: a city is a parent with few levels by its region. Grouping costs nothing.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Final, TypedDict, TypeVar

import pyarrow as pa

from cube.axis import CategoryAxis
from cube.query import Scope
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge, UnknownName
from cube.schema import Schema
from cube.statistic import N_PARENTS_MAX, Score
from planner.planner import workload_scopes
from planner.sql import JOINED_BY, CreateSynthetic, listed, shortened, suggestion
from proxy.config import SyntheticLimits
from proxy.sources.public import PublicTable
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.request import (
    DEFAULT_STRUCTURE,
    THETA_MAX,
    THETA_MIN,
    AskedHolders,
    Clip,
    Grouping,
    Joining,
    Method,
    SynthesisRequest,
    Votes,
)
from synthesis import DEGREES, FEDERATED, NETWORK_SHARES, Smoothing, Structure
from synthesis.privbayes import DEFAULTS

TEXT_BYTES = 4  # what Arrow stores for a text in addition to its characters
VALUE_BYTES = 8  # at most, of any other value
EVALUATE_MIN = Fraction(1, 1000)  # as for a table: less tells nothing
EVALUATE_MAX = 100  # beyond it nothing is private, and a typing error is likely


def request_of(
    order: CreateSynthetic,
    schema: Schema,
    limits: SyntheticLimits,
    public: Sequence[PublicTable] = (),
    *,
    is_federated: bool = False,
) -> SynthesisRequest:
    """The request that an order stands for; public tables say the groups of levels.

    Parameters
    ----------
    order : CreateSynthetic
    schema : Schema
        What SQL sees of the private table.
    limits : SyntheticLimits
    public : sequence of PublicTable
    is_federated : bool
        Whether several holders have the private table's rows.

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
    network = _network_settings(order, method, schema, public)
    if is_federated:
        if schema.holders in (*columns, *target):
            _check_column_of_holders(order, method, columns, target, schema.holders)
        network |= _federated_settings(order, method)
    else:
        _check_not_joined(order, schema)
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
        any_holders=_one_of("holders", order.holders, AskedHolders, AskedHolders.ALL)
        is AskedHolders.ANY,
        **network,
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
    theta: float
    structure_share: Fraction
    groups: tuple[Grouping, ...]
    joining: Joining


def _network_settings(
    order: CreateSynthetic, method: Method, schema: Schema, public: Sequence[PublicTable]
) -> _NetworkSettings:
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
    _add_budgets(asked, order)
    if order.groups:
        asked["groups"] = ()
    if asked and method is not Method.PRIVBAYES:
        raise InvalidRequest(
            f"The method {method} has no setting {' or '.join(asked)}.",
            hint="Use method => 'privbayes', or leave the setting out.",
        )
    if order.groups:
        asked["groups"] = _groupings(order, schema, public)
    return asked


_UNUSED: Final[Mapping[Structure, tuple[str, ...]]] = {
    Structure.STATISTICS: ("votes", "score", "theta", "structure_share"),
    Structure.VOTES: (),
    Structure.MODELS: ("votes", "clip", "smoothing", "public_rows"),
}


def _check_not_joined(order: CreateSynthetic, schema: Schema) -> None:
    """Refuse what only several holders' answers need."""
    for name in JOINED_BY:
        if getattr(order, name) is not None:
            raise InvalidRequest(
                f"{name} says how answers of several holders are joined; {schema.table} is no "
                "federated table.",
                hint=f"Leave {name} out.",
            )
    if order.holders is not None:
        raise InvalidRequest(
            f"holders says which holders have to answer; {schema.table} is no federated table.",
            hint="Leave holders out.",
        )


def _check_column_of_holders(
    order: CreateSynthetic,
    method: Method,
    columns: Sequence[str],
    target: Sequence[str],
    name: str,
) -> None:
    """Refuse the holder as a column where its rows cannot be told apart, or need not be bought."""
    if method is Method.PRIVBAYES:
        raise InvalidRequest(
            f"A network of several holders is learned from their sums, and has no column {name}.",
            hint=f"Use method => 'pairwise', or leave {name} out of columns.",
        )
    if name in target:
        raise InvalidRequest(
            f"{name} cannot be a target: every count is measured for each holder anyway.",
            hint=f"Leave {name} out of target, and name it in columns.",
        )
    if len(columns) == 1:
        raise InvalidRequest(
            f"A synthetic table needs a column beside {name}.",
            hint=f"Name another column; how many rows each {name} has is answered in SQL.",
        )
    if order.holders is not None and order.holders.lower() == AskedHolders.ANY:
        raise InvalidRequest(
            f"A table with the column {name} needs all holders: rows of the others would be "
            "missing in it.",
            hint=f"Leave holders => 'any' out, or leave {name} out of columns.",
        )


def _federated_settings(order: CreateSynthetic, method: Method) -> _NetworkSettings:
    """How a network is joined, and its degree if the order gives none."""
    given = [name for name in JOINED_BY if getattr(order, name) is not None]
    if method is not Method.PRIVBAYES:
        if given:
            raise InvalidRequest(
                f"The method {method} has no setting {' or '.join(given)}.",
                hint="Use method => 'privbayes', or leave the setting out.",
            )
        return _NetworkSettings()
    structure = _one_of("structure", order.structure, Structure, DEFAULT_STRUCTURE)
    for name in _UNUSED[structure]:
        if getattr(order, name) is not None:
            raise InvalidRequest(
                f"The structure {structure} has no setting {name}.",
                hint=f"Leave {name} out, or use another structure.",
            )
    if order.public_rows is not None and order.public_rows < 1:
        raise InvalidTarget("public_rows must be at least 1.", hint="Leave it out if unknown.")
    joining = Joining(
        structure=structure,
        votes=_one_of("votes", order.votes, Votes, Votes.BY_SIZE),
        clip=_one_of("clip", order.clip, Clip, Clip.COORDINATOR),
        smoothing=_one_of("smoothing", order.smoothing, Smoothing, FEDERATED.smoothing),
        public_rows=order.public_rows,
    )
    settings = _NetworkSettings(joining=joining)
    if order.degree is None:
        settings["degree"] = DEGREES[structure]
    if order.structure_share is None:
        settings["structure_share"] = NETWORK_SHARES.get(structure, DEFAULTS.network_share)
    return settings


_Named = TypeVar("_Named", bound=StrEnum)


def _one_of(name: str, given: str | None, kind: type[_Named], usual: _Named) -> _Named:
    """The value of an option that a text names."""
    values = [one.value for one in kind]
    if given is None:
        return usual
    if given.lower() not in values:
        raise InvalidRequest(
            f"{name} cannot be {shortened(given)!a}.",
            hint=suggestion(given, values) or f"It is one of {listed(values)}.",
        )
    return kind(given.lower())


def _groupings(
    order: CreateSynthetic, schema: Schema, public: Sequence[PublicTable]
) -> tuple[Grouping, ...]:
    """The groups of levels that an order names, of the columns that the table will have."""
    kept = tuple(_column(name, schema) for name in order.columns)
    found = groupings_of(order.groups, schema, public)
    for one in found:
        if kept and one.column not in kept:
            raise InvalidRequest(
                f"{one.name} groups {one.column}, which is not among the columns.",
                hint=f"They are {listed(kept)}.",
            )
    return found


def _add_budgets(asked: _NetworkSettings, order: CreateSynthetic) -> None:
    """Add how a network's budget is divided, and how large its tables may be."""
    if order.theta is not None:
        if not THETA_MIN <= order.theta <= THETA_MAX:
            raise InvalidTarget(
                f"theta must be a number from {THETA_MIN:g} to {THETA_MAX:g}.",
                hint=f"{DEFAULTS.theta:g} is usual: a cell's average count is so many times its "
                "noise. More makes smaller tables.",
            )
        asked["theta"] = float(order.theta)
    if order.structure_share is not None:
        if not 0 < order.structure_share < 1:
            raise InvalidTarget(
                "structure_share must be between 0 and 1.",
                hint=f"{float(DEFAULTS.network_share):g} is usual: the share of epsilon that "
                "chooses parents. The rest measures tables.",
            )
        asked["structure_share"] = order.structure_share


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
    kept = columns or [axis.name for axis in schema.of_one_holder.axes]
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
    axes = [schema.by_name[name] for name in columns] or schema.of_one_holder.axes
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


N_GROUPINGS_MAX: Final = 16
N_CLASSES_MIN: Final = 2


def groupings_of(
    names: Sequence[str], schema: Schema, public: Sequence[PublicTable]
) -> tuple[Grouping, ...]:
    """The groups that columns of public tables make of the private table's categories.

    Parameters
    ----------
    names : sequence of str
        Each a public table, a dot and one of its columns, the finest groups of a category first.
        The table's key is a category of the private table, or groups that were named before.
    schema : Schema
    public : sequence of PublicTable

    Raises
    ------
    UnknownName, InvalidRequest, TooLarge

    Notes
    -----
    A level that is not in the public table, NULL and the value for everything else are groups of
    their own.
    """
    if len(names) > N_GROUPINGS_MAX:
        raise TooLarge(
            f"groups names {len(names)} columns; at most {N_GROUPINGS_MAX} are used.",
            hint="Leave out those of columns with few levels.",
        )
    known: dict[str, tuple[str, list[object]]] = {  # by name: the category, and its levels' values
        axis.name.casefold(): (axis.name, list(axis.regular))
        for axis in schema.axes
        if isinstance(axis, CategoryAxis)
    }
    found: list[Grouping] = []
    for name in names:
        table, column = _public_column(name, public)
        key = table.key_columns[0]
        if key.casefold() not in known:
            raise InvalidRequest(
                f"{table.name} has the key {key}, which is no category of {schema.table}.",
                hint="Name the groups of a category, then the groups of these groups, as in "
                "groups => (cities.region, regions.country).",
            )
        base, values = known[key.casefold()]
        told: list[object] = _told(table, key, column, values)
        n_levels = schema.by_name[base].size
        labels = _labels(told, n_levels)
        before = next((one for one in reversed(found) if one.column == base), None)
        n_before = n_levels if before is None else before.n_classes
        grouping = Grouping(name=f"{table.name}.{column}", column=base, labels=labels)
        if not N_CLASSES_MIN <= grouping.n_classes < n_before:
            raise InvalidRequest(
                f"{grouping.name} makes {grouping.n_classes} groups of {n_before} levels of "
                f"{base}.",
                hint="Groups are at least two, and fewer than what they group. Leave it out.",
            )
        if before is not None and not _merges_whole(before.labels, labels):
            raise InvalidRequest(
                f"{grouping.name} does not group whole groups of {before.name}.",
                hint="Name one of the two.",
            )
        found.append(grouping)
        known[column.casefold()] = (base, told)
    return tuple(found)


def _public_column(name: str, public: Sequence[PublicTable]) -> tuple[PublicTable, str]:
    """A public table with a key of one column, and another of its columns."""
    table_name, _, column_name = name.rpartition(".")
    tables = {table.name.casefold(): table for table in public}
    table = tables.get(table_name.casefold())
    if table is None:
        told = listed([one.name for one in public]) if public else "There is none."
        raise UnknownName(
            f"There is no public table {shortened(table_name)!a}.",
            hint=suggestion(table_name, [one.name for one in public]) or f"Public tables: {told}",
        )
    if len(table.key_columns) != 1:
        raise InvalidRequest(
            f"{table.name} has no key of one column, so it does not group levels.",
            hint='Declare one, as in key = "city".',
        )
    others = [one for one in table.data.column_names if one not in table.key_columns]
    by_name = {one.casefold(): one for one in others}
    if column_name.casefold() not in by_name:
        raise UnknownName(
            f"{table.name} has no column {shortened(column_name)!a} beside its key.",
            hint=suggestion(column_name, others) or f"It has {listed(others)}.",
        )
    return table, by_name[column_name.casefold()]


def _told(table: PublicTable, key: str, column: str, values: Sequence[object]) -> list[object]:
    """The group of each value; None if the table has none."""
    keys: pa.ChunkedArray = table.data.column(key)
    group_of: Mapping[object, object] = dict(
        zip(keys.to_pylist(), table.data.column(column).to_pylist(), strict=True)
    )
    return [None if value is None else group_of.get(value) for value in values]


def _labels(told: Sequence[object], n_levels: int) -> tuple[int, ...]:
    """The class of each level; a level without a group is alone, as are those after the regular."""
    classes: dict[object, int] = {}
    named = [*told, *[None] * (n_levels - len(told))]
    return tuple(
        classes.setdefault(("alone", place) if group is None else ("group", group), len(classes))
        for place, group in enumerate(named)
    )


def _merges_whole(finer: Sequence[int], coarser: Sequence[int]) -> bool:
    return len(set(zip(finer, coarser, strict=True))) == len(set(finer))
