"""The models that synthetic rows are drawn from, and levels as values and back.

Levels as values: drawn rows as a table that SQL can read.

A bin of numbers gives a random number inside it. Values depend only on the drawn levels and on the
public schema.

Values as levels: from the rows of a synthetic table back to the drawn levels.

Used to compare synthetic rows with the history's estimates for levels. These rows are public.

A model as a file, with its columns: what one Tacit hands out, and another reads.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.encoding import axis_declared, declared_column
from synthesis import (
    Model,
    PairwiseModel,
    StratifiedModel,
    drawn_levels,
    model,
    model_json,
    model_of,
    model_sizes,
    strata,
    strata_json,
    strata_model_of,
)
from synthesis.privbayes import network_json, network_of


def arrow_type(axis: Axis) -> pa.DataType:
    """The type of a column's values."""
    match axis:
        case CategoryAxis():
            return pa.string()
        case BooleanAxis():
            return pa.bool_()
        case DateAxis():
            return pa.date32()
        case TimestampAxis():
            return pa.timestamp("us")
        case IntegerAxis():
            return pa.int64()
        case _:
            return pa.int64() if axis.sql_type == "BIGINT" else pa.float64()


def decoded(axes: Sequence[Axis], rows: NDArray[np.int32], rng: np.random.Generator) -> pa.Table:
    """Rows of levels as a table of values.

    Parameters
    ----------
    axes : sequence of Axis
        The axes of the columns, in order.
    rows : (n_rows, n_columns) ndarray of int32
        The position of each row's level in each column.
    rng : numpy.random.Generator
        Draws the values inside bins.
    """
    columns = [_values(axis, rows[:, place], rng) for place, axis in enumerate(axes)]
    return pa.table(columns, schema=pa.schema([(one.name, arrow_type(one)) for one in axes]))


def _values(axis: Axis, drawn: NDArray[np.int32], rng: np.random.Generator) -> pa.Array:
    if not isinstance(axis, NumericAxis):
        return pa.array(axis.levels, type=arrow_type(axis)).take(pa.array(drawn))
    edges = np.array(axis.edges, dtype=np.float64)
    is_bin = drawn < len(axis.regular)
    low = np.where(is_bin, drawn, 0)
    # Slightly below 1, so that rounding never leaves the bin.
    share = rng.random(drawn.size) * (1 - 2.0**-40)
    values = edges[low] + share * (edges[low + 1] - edges[low])
    values = np.minimum(values, np.nextafter(edges[low + 1], -np.inf))
    if axis.other_position is not None:
        values = np.where(drawn == axis.other_position, float(str(axis.other)), values)
    is_null = np.zeros(drawn.size, dtype=bool)
    if axis.null_position is not None:
        is_null = drawn == axis.null_position
    return pa.array(values, mask=is_null, type=pa.float64())


def levels_of(axes: Sequence[Axis], table: pa.Table) -> dict[str, NDArray[np.int64]]:
    """The position of each row's level in each column, in the order of `axes`.

    Raises
    ------
    ValueError
        If a value has no level.
    """
    return {axis.name: _places(axis, table.column(axis.name)) for axis in axes}


def _places(axis: Axis, values: pa.ChunkedArray) -> NDArray[np.int64]:
    if isinstance(axis, NumericAxis):
        return _bins(axis, values)
    found = pc.index_in(values, value_set=pa.array(axis.levels, type=values.type))
    if found.null_count:
        raise _no_level(axis)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _bins(axis: NumericAxis, values: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers = values.cast(pa.float64()).to_numpy()
    is_null = np.isnan(numbers)
    places: NDArray[np.int64] = np.searchsorted(axis.edges, numbers, side="right") - 1
    places[numbers == axis.edges[-1]] = len(axis.regular) - 1
    is_outside = is_null | (places < 0) | (places >= len(axis.regular))
    for level, is_there in (
        (axis.other_position, numbers == axis.other),
        (axis.null_position, is_null),
    ):
        if level is not None:
            places[is_there] = level
            is_outside &= ~is_there
    if is_outside.any():
        raise _no_level(axis)
    return places


def _no_level(axis: Axis) -> ValueError:
    return ValueError(f"{axis.name} has a value without a level")


N_ROWS_MAX: Final = 2**40  # of a model in a file
N_ROWS_AT_ONCE: Final = 2**20  # so that memory does not grow with the rows


def encoded(model: Model) -> dict[str, Any]:
    """A model as JSON values."""
    match model:
        case PairwiseModel():
            return model_json(model)
        case StratifiedModel():
            return strata_json(model)
        case _:
            return network_json(model)


def decoded_model(values: Mapping[str, Any]) -> Model:
    """The model that `encoded` wrote; ValueError, KeyError or TypeError if it is not one."""
    match values["kind"]:
        case model.KIND:
            return model_of(dict(values))
        case strata.KIND:
            return strata_model_of(dict(values))
        case _:
            return network_of(dict(values))


def n_rows_of(model: Mapping[str, Any]) -> int:
    """The estimate of the number of rows of a model that `encoded` wrote."""
    return max(1, round(float(model["total"])))


def drawn(model: Model, axes: Sequence[Axis], *, n_rows: int | None, seed: int) -> pa.Table:
    """Rows drawn from a model, as values: the same for the same seed."""
    return pa.concat_tables(drawn_parts(model, axes, n_rows=n_rows, seed=seed))


def drawn_parts(
    model: Model, axes: Sequence[Axis], *, n_rows: int | None, seed: int
) -> Iterator[pa.Table]:
    """The same rows, a part at a time.

    Notes
    -----
    More than `N_ROWS_AT_ONCE` rows are drawn in parts of nearly equal size. Every part is a table
    of the model by itself: its counts are those of the model up to rounding to whole rows.
    """
    rng = np.random.default_rng(seed)
    n_left = round(model.total) if n_rows is None else n_rows
    for n_parts in range(max(1, -(-n_left // N_ROWS_AT_ONCE)), 0, -1):
        n_drawn = -(-n_left // n_parts)
        n_left -= n_drawn
        yield decoded(axes, drawn_levels(model, rng, n_drawn), rng)


FORMAT: Final = 1  # of a file with a model; a reader of another format refuses it
N_BYTES_MAX: Final = 2**28  # of such a file


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model, and the columns that its levels are of.

    Parameters
    ----------
    axes : tuple of Axis
        The columns of rows, in order.
    model : Model
    """

    axes: tuple[Axis, ...]
    model: Model

    @classmethod
    def of(cls, encoded_model: Mapping[str, Any], axes: Iterable[Axis]) -> "ModelFile":
        """A model that a store keeps; the seed of its rows is left out."""
        return cls(tuple(axes), decoded_model(encoded_model))

    def to_bytes(self) -> bytes:
        """The content of the file: JSON, in which everything is public or noisy."""
        content = {
            "tacit_model": FORMAT,
            "columns": [declared_column(axis) for axis in self.axes],
            "model": encoded(self.model),
        }
        return json.dumps(content, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "ModelFile":
        """The model in a file.

        Raises
        ------
        ValueError
            With what is wrong, if the content is no such file, or its numbers are no model.
        """
        try:
            values: Any = json.loads(content.decode("utf-8-sig"))
            if values["tacit_model"] != FORMAT:
                raise ValueError("its format is another one")
            axes = tuple(axis_declared(one) for one in values["columns"])
        except (KeyError, TypeError, AttributeError, RecursionError, UnicodeDecodeError):
            raise ValueError(
                "it is not a file that `tacit synth get -o FILE.model` writes"
            ) from None
        except json.JSONDecodeError:
            raise ValueError("it is not JSON, or a part of it is missing") from None
        return cls(axes, _checked(values.get("model"), axes))


def _checked(values: Any, axes: Sequence[Axis]) -> Model:
    """The model in a file that anybody may have written.

    Raises
    ------
    ValueError
    """
    total = values.get("total") if isinstance(values, dict) else None
    if total is None or type(total) not in {int, float}:
        raise ValueError("its model does not say how many rows it is of")
    if not 0 <= total < N_ROWS_MAX:
        raise ValueError("its model is not of a number of rows that a table can have")
    try:
        found = decoded_model(values)
        sizes = model_sizes(found)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError):
        raise ValueError("its model lacks a part, or has one of another kind") from None
    if sizes != {axis.name: axis.size for axis in axes} or len(sizes) != len(axes):
        raise ValueError("its model is of other columns or levels than the file declares")
    for one in _pairwise_parts(found):
        arrays = (
            *one.shares.values(),
            *one.parts.values(),
            *(t.counts for t in one.pairs.values()),
        )
        if not all(np.isfinite(own).all() and (own >= 0).all() for own in arrays):
            raise ValueError("a share or a count of its model is negative or no number")
    return found


def _pairwise_parts(found: Model) -> Iterable[PairwiseModel]:
    match found:
        case PairwiseModel():
            return (found,)
        case StratifiedModel():
            return found.models.values()
        case _:
            return ()
