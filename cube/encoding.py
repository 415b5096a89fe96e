"""The vocabulary as plain JSON values, in which a ledger records measurements and their table.

Blocks and statistics are written and read back. Arrays are run-length encoded (``runs``:
``[length, value, length, value, ...]``), so a predicate on an ordered axis is a few numbers that a
person can check. Where an array along one axis rises or falls from level to level, it is written as
``pieces`` instead: ``[[length, value], [length, value, first difference, second difference],
...]``, each a polynomial of the place. Either is read. Groups over several axes, one of them with
many levels, are ``classes``, the runs of each axis's classes of levels, and the runs of the groups
over products of classes. The encoding is canonical: equal blocks have equal text, which makes
`fingerprint` an identity.

The public declaration of a table is written as JSON text, so that a ledger can be read without its
server. It is for readers only: nothing of a ledger depends on it. Of a column it is read back, from
the files of models.
"""

import datetime as dt
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.classes import Tiles
from cube.pieces import (
    N_CURVED_LEAST,
    Pieces,
    constant_pieces,
    decoded_pieces,
    pieces_of,
    runs_of,
)
from cube.query import (
    N_FACTOR_CELLS_MAX,
    N_NARROW_LEVELS_MAX,
    Factor,
    LinearQuery,
    Partition,
    QueryBlock,
    Term,
    shape_of,
)
from cube.schema import Schema
from cube.statistic import (
    BOUNDED_ROWS,
    UNIT_COUNT,
    UNIT_SIZES,
    BoundedRows,
    Choice,
    ChoiceCandidate,
    Distance,
    GaussianCounts,
    OfUnits,
    Score,
    UnitCount,
    UnitSizes,
)

N_KEPT_NUMBERS_MAX = 2**12  # of a factor whose encoding is kept
SCALE_MAX = 2**80  # of a term: far beyond any row that is measured
_EXACT = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")

ArrayName: TypeAlias = tuple[tuple[Any, ...], ...]
"""Axes, shape and content of an array, as they are written."""


def exact_number(text: str) -> Fraction:
    """The number for a text like ``3`` or ``-3/7``, of at most 4000 digits a part.

    Other texts that `Fraction` takes, as ``1e999999999``, may take all memory.

    Raises
    ------
    ValueError, TypeError
    """
    if _EXACT.fullmatch(text) is None:
        raise ValueError("the text must be an exact number such as 3/7")
    return Fraction(text)


def encode_block(block: QueryBlock) -> dict[str, Any]:
    """A block as JSON values."""
    encoded: dict[str, Any] = {
        "terms": [_encode_term(term) for term in block.query.terms],
        "constant": str(block.query.constant),
    }
    if block.partition is not None:
        encoded["partition"] = _encode_array(block.partition.axes, block.partition.groups)
    return encoded


def decode_block(encoded: dict[str, Any]) -> QueryBlock:
    """The block that `encode_block` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such an encoding.
    """
    terms = tuple(_decode_term(term) for term in encoded["terms"])
    query = LinearQuery(terms, exact_number(encoded["constant"]))
    partition = None
    if "partition" in encoded:
        partition = _decode_partition(encoded["partition"])
    return QueryBlock(query, partition)


def encode_statistic(
    statistic: Distance | Choice | OfUnits | GaussianCounts,
) -> dict[str, Any]:
    """A statistic as JSON values."""
    if isinstance(statistic, UnitCount):
        return {
            "kind": UNIT_COUNT,
            "block": encode_block(statistic.block),
            "groups_max": statistic.groups_max,
            **({"only_cut": True} if statistic.only_cut else {}),
        }
    if isinstance(statistic, BoundedRows):
        return {
            "kind": BOUNDED_ROWS,
            "block": encode_block(statistic.block),
            "rows_max": statistic.rows_max,
            "sum_max": statistic.sum_max,
        }
    if isinstance(statistic, UnitSizes):
        return {
            "kind": UNIT_SIZES,
            "block": encode_block(statistic.block),
            "n_ranges": statistic.n_ranges,
            "by_sum": statistic.by_sum,
        }
    if isinstance(statistic, GaussianCounts):
        return {"kind": "normal_counts", "block": encode_block(statistic.block)}
    if isinstance(statistic, Distance):
        return {
            "kind": "distance",
            "block": encode_block(statistic.block),
            "reference": list(statistic.reference),
        }
    return {
        "kind": "choice",
        "score": statistic.score.value,
        "views": [_encode_array(view.axes, view.groups) for view in statistic.views],
        "candidates": [[one.child, *one.parents] for one in statistic.candidates],
        **({} if statistic.within is None else {"within": _encode_factor(statistic.within)}),
    }


def decode_statistic(
    encoded: dict[str, Any],
) -> Distance | Choice | OfUnits | GaussianCounts:
    """The statistic that `encode_statistic` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such an encoding.
    """
    match encoded["kind"]:
        case "normal_counts":
            return GaussianCounts(decode_block(encoded["block"]))
        case "distance":
            return Distance(decode_block(encoded["block"]), tuple(encoded["reference"]))
        case "choice":
            return Choice(
                Score(encoded["score"]),
                tuple(_decode_partition(view) for view in encoded["views"]),
                tuple(
                    ChoiceCandidate(child, tuple(rest)) for child, *rest in encoded["candidates"]
                ),
                _decode_factor(encoded["within"]) if "within" in encoded else None,
            )
        case "unit_count":
            only_cut = encoded.get("only_cut", False)
            if "only_cut" in encoded and only_cut is not True:
                raise ValueError("only_cut, if given, must be true")
            return UnitCount(decode_block(encoded["block"]), encoded["groups_max"], only_cut)
        case "bounded_rows":
            block = decode_block(encoded["block"])
            return BoundedRows(block, encoded["rows_max"], encoded["sum_max"])
        case "unit_sizes":
            block = decode_block(encoded["block"])
            return UnitSizes(block, encoded["n_ranges"], encoded["by_sum"])
        case other:
            raise ValueError(f"the statistic {other!r} does not exist")


def canonical_json(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


# Weak: a block may hold megabytes, and a cache of names must not keep it alive.
_FINGERPRINTS: WeakKeyDictionary[QueryBlock, str] = WeakKeyDictionary()


def fingerprint(block: QueryBlock) -> str:
    """A name for what a block counts: equal encodings have equal fingerprints."""
    known = _FINGERPRINTS.get(block)
    if known is None:
        known = hashlib.sha256(canonical_json(encode_block(block)).encode()).hexdigest()
        _FINGERPRINTS[block] = known
    return known


def named(query: LinearQuery, partition: Partition | None, name: str) -> QueryBlock:
    """A block whose fingerprint is known: from who kept it beside the block."""
    block = QueryBlock(query, partition)
    _FINGERPRINTS[block] = name
    return block


def name_of_factor(factor: Factor) -> ArrayName:
    """By which equal factors that are in use are found to be one object."""
    return _name_of_array(_encode_factor(factor))


def factor_named(name: ArrayName, make: Callable[[], Factor]) -> Factor:
    """The factor in use with this name, or one that is made now."""
    known = _FACTORS.get(name)
    if known is None:
        known = _FACTORS[name] = make()
    return known


def _encode_term(term: Term) -> dict[str, Any]:
    return {
        "scale": str(term.scale),
        "factors": [_encode_factor(factor) for factor in term.factors],
    }


# Many statements share few predicates, and each is encoded to name it. Weak, as above.
_ENCODED: WeakKeyDictionary[Factor, dict[str, Any]] = WeakKeyDictionary()


def _encode_factor(factor: Factor) -> dict[str, Any]:
    """A factor as JSON values, which are not to be changed; those of few numbers are kept."""
    known = _ENCODED.get(factor)
    if known is None:
        known = _encode_array(factor.axes, factor.numbers)
        if factor.n_stored <= N_KEPT_NUMBERS_MAX:
            _ENCODED[factor] = known
    return known


def _decode_term(encoded: dict[str, Any]) -> Term:
    factors = tuple(_decode_factor(factor) for factor in encoded["factors"])
    scale = exact_number(encoded["scale"])
    if abs(scale) > SCALE_MAX:
        raise ValueError("a coefficient must not exceed 2**80")
    return Term(scale, factors)


# Many statements share few predicates and ways to group: equal ones in use are one object. Weak, as
# above.
_FACTORS: WeakValueDictionary[ArrayName, Factor] = WeakValueDictionary()
_PARTITIONS: WeakValueDictionary[ArrayName, Partition] = WeakValueDictionary()


def _decode_factor(encoded: dict[str, Any]) -> Factor:
    return factor_named(_name_of_array(encoded), lambda: Factor(*_decode_array(encoded)))


def _decode_partition(encoded: dict[str, Any]) -> Partition:
    name = _name_of_array(encoded)
    known = _PARTITIONS.get(name)
    if known is None:
        known = _PARTITIONS[name] = _made_partition(encoded)
    return known


def _name_of_array(encoded: dict[str, Any]) -> ArrayName:
    content = encoded["runs"] if "runs" in encoded else map(tuple, encoded["pieces"])
    classes = map(tuple, encoded.get("classes", ()))
    return tuple(encoded["axes"]), tuple(encoded["shape"]), tuple(content), *classes


def _encode_array(
    axes: tuple[str, ...], numbers: NDArray[np.int64] | Pieces | Tiles
) -> dict[str, Any]:
    encoded: dict[str, Any] = {"axes": list(axes), "shape": list(shape_of(numbers))}
    if isinstance(numbers, Tiles):
        along = [_listed(one) for one in numbers.along]
        return {**encoded, "classes": along, **_content(numbers.values.ravel())}
    if isinstance(numbers, Pieces) or len(axes) == 1:
        return {**encoded, **_content(numbers)}
    return {**encoded, "runs": _listed(runs_of(numbers.ravel()))}


def _content(numbers: NDArray[np.int64] | Pieces) -> dict[str, Any]:
    """A vector as pieces where its values follow a line or a curve somewhere, otherwise as runs.

    A function of the values alone, whatever holds them.
    """
    pieces = numbers
    if not isinstance(pieces, Pieces):
        pieces = pieces_of(pieces)
    elif pieces.degree == 0 and pieces.n_pieces >= N_CURVED_LEAST:
        pieces = pieces_of(pieces.dense())
    if pieces.degree == 0:
        return {"runs": _listed(pieces)}
    return {
        "pieces": [
            [length, value, first, second] if first or second else [length, value]
            for length, (value, first, second) in zip(
                pieces.lengths.tolist(), pieces.differences.tolist(), strict=True
            )
        ]
    }


def _listed(runs: Pieces) -> list[int]:
    both = np.stack((runs.lengths, runs.coefficients[:, 0]), axis=1)
    listed: list[int] = both.ravel().tolist()
    return listed


def _decode_array(
    encoded: dict[str, Any],
) -> tuple[tuple[str, ...], NDArray[np.int64] | Pieces]:
    axes, shape = tuple(encoded["axes"]), tuple(int(size) for size in encoded["shape"])
    size = math.prod(shape)
    if not 0 < size <= N_FACTOR_CELLS_MAX:
        raise ValueError(f"an array cannot have the shape {shape}")
    if "pieces" in encoded:
        if len(shape) != 1:
            raise ValueError("pieces must lie along one axis")
        found = decoded_pieces(encoded["pieces"], size)
        return axes, found if size > N_NARROW_LEVELS_MAX else found.dense()
    return axes, _decode_runs(encoded["runs"], size).dense().reshape(shape)


def _made_partition(encoded: dict[str, Any]) -> Partition:
    if "classes" not in encoded:
        axes, groups = _decode_array(encoded)
        return Partition(axes, groups.dense() if isinstance(groups, Pieces) else groups)
    sizes = zip(encoded["classes"], encoded["shape"], strict=True)
    along = tuple(_decode_runs(classes, int(size)) for classes, size in sizes)
    shape = tuple(one.ends[1] + 1 for one in along)
    size = math.prod(shape)
    values = (
        decoded_pieces(encoded["pieces"], size)
        if "pieces" in encoded
        else _decode_runs(encoded["runs"], size)
    )
    return Partition(tuple(encoded["axes"]), Tiles(along, values.dense().reshape(shape)))


def _decode_runs(listed: list[int], size: int) -> Pieces:
    runs = np.array(listed, dtype=np.int64)
    lengths, values = runs[0::2], runs[1::2]
    if (lengths <= 0).any() or int(lengths.sum()) != size:
        raise ValueError("the run lengths must fill the array")
    return constant_pieces(np.cumsum(lengths) - lengths, values, size)


AXIS_KINDS: Final[dict[type[Axis], str]] = {
    CategoryAxis: "category",
    IntegerAxis: "integer",
    NumericAxis: "numeric",
    BooleanAxis: "boolean",
    DateAxis: "date",
    MeasureAxis: "measure",
    TimestampAxis: "timestamp",
}


def declare(schema: Schema, *, version: str, separate_budget: str = "") -> str:
    """The declaration of a schema, made by a version of Tacit.

    `separate_budget` is why a table has a budget of its own beside others about the same units.

    The positions of a column's levels are those of its regular levels in order, then OTHER, then
    NULL.
    """
    return canonical_json(
        {
            "table": schema.table,
            "neighbours": schema.neighbours.value,
            "n_records_max": schema.n_records_max,
            "unit": schema.unit,
            "version": version,
            "columns": [declared_column(axis) for axis in schema.axes],
            **_bounds(schema),
            **({} if schema.holders is None else {"holders": schema.holders}),
            **({"people_overlap": True} if schema.people_overlap else {}),
            **({"separate_budget": separate_budget} if separate_budget else {}),
        }
    )


def _bounds(schema: Schema) -> dict[str, Any]:
    """The bounds on the rows of a unit, and on its groups, where a unit may have several."""
    n_rows, by = schema.rows_per_unit_max, schema.rows_per_unit_max_by
    n_groups = schema.groups_per_unit_max
    return {
        **({} if n_rows == 1 else {"rows_per_unit_max": n_rows}),
        **({} if by is None else {"rows_per_unit_max_by": by.declaration}),
        **({} if n_groups is None else {"groups_per_unit_max": n_groups}),
    }


def declared_column(axis: Axis) -> dict[str, Any]:
    """The declaration of a column as JSON values."""
    return {
        "name": axis.name,
        "kind": AXIS_KINDS[type(axis)],
        "sql_type": axis.sql_type,
        "size": axis.size,
        "null": axis.null,
        "other": None if axis.other is None else str(axis.other),
        **_regular(axis),
    }


def _regular(axis: Axis) -> dict[str, Any]:
    match axis:
        case CategoryAxis():
            return {"levels": list(axis.values)}
        case BooleanAxis():
            return {"levels": ["false", "true"]}
        case NumericAxis():
            return {"edges": [repr(edge) for edge in axis.edges]}
        case IntegerAxis() | DateAxis():
            return {"low": str(axis.low), "high": str(axis.high)}
        case MeasureAxis():
            ends = {"low": axis.low, "high": axis.high, "step": axis.step}
            return {name: str(Fraction(value)) for name, value in ends.items()}
        case TimestampAxis():
            zone = {} if axis.time_zone is None else {"time_zone": axis.time_zone}
            return {"low": str(axis.low), "high": str(axis.high), "step": axis.step, **zone}
        case _:
            raise TypeError(f"a column has the unknown kind {type(axis).__name__}")


def axis_declared(column: Mapping[str, Any]) -> Axis:
    """The axis of a column that `declared_column` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is no such declaration.
    """
    kind, other = column["kind"], column["other"]
    of_type = {name: kind for kind, name in AXIS_KINDS.items()}[kind]
    common: dict[str, Any] = {"name": str(column["name"]), "null": bool(column["null"])}

    def ends(read: Callable[[str], Any]) -> dict[str, Any]:
        found = None if other is None else read(other)
        return {"low": read(column["low"]), "high": read(column["high"]), "other": found}

    match kind:
        case "category":
            found: Axis = CategoryAxis(values=tuple(column["levels"]), other=other, **common)
        case "boolean":
            found = BooleanAxis(**common)
        case "numeric":
            edges = tuple(map(float, column["edges"]))
            found = NumericAxis(
                edges=edges, other=None if other is None else float(other), **common
            )
        case "integer":
            found = IntegerAxis(**ends(int), **common)
        case "date":
            found = DateAxis(**ends(dt.date.fromisoformat), **common)
        case "timestamp":
            zone = column.get("time_zone")
            found = TimestampAxis(
                **ends(dt.datetime.fromisoformat), step=column["step"], time_zone=zone, **common
            )
        case _:
            raise ValueError(f"{of_type.__name__} has no levels that rows are drawn of")
    if found.size != column["size"]:
        raise ValueError(f"{found.name} has {found.size} levels, not {column['size']}")
    return found
