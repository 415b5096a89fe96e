"""The state of a ledger as bytes, and back: what a checkpoint holds (checkpoint.py).

The bytes are a pickle of values. Nothing but the values that a history consists of is ever written
or read: frozen dataclasses and enumerations of the modules named below, by their fields alone, and
a few containers. Bytes of other code mean nothing, so `code_digest` is a part of every file.

What a process knows beside the entries is left out: which of them it made itself. Nothing here
reads or writes a file, or knows who wrote one. Proof: proofs/checkpoint.md.
"""

import dataclasses
import hashlib
import pickle
import platform
import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from copyreg import __newobj__  # type: ignore[attr-defined]
from enum import Enum
from fractions import Fraction
from functools import cache
from io import BytesIO
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.cost.history_cost import CostState
from accountant.ledger.append_only import AppendOnly, GrowingSet
from accountant.ledger.replay import Replay
from accountant.ledger.successor import successor
from cube.encoding import ArrayName, factor_named, fingerprint, name_of_factor, named
from cube.pieces import Pieces
from cube.query import Factor, QueryBlock

PROTOCOL: Final = 5
OUR_MODULES: Final = ("accountant.cost.", "accountant.ledger.", "accountant.noise.", "cube.")

Recipe: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""How a value is made again: a function and its arguments."""


class NotAState(pickle.PickleError):
    """The bytes are no state, or a state holds what is no value."""


def state_bytes(replay: Replay) -> bytes:
    """A state as bytes; one that another thread goes on from meanwhile.

    Raises
    ------
    NotAState
        If it holds anything but the values that a ledger is read into.
    """
    nothing_read = {
        name: successor(one, read=GrowingSet()) for name, one in replay.histories.items()
    }
    stream = BytesIO()
    known = nothing_read, replay.access, replay.end, replay.collections, replay.streams
    _Writer(stream, PROTOCOL).dump(known)
    return stream.getvalue()


def state_of(content: bytes) -> Replay:
    """The state that `state_bytes` wrote, as of a process that has read no entry.

    Raises
    ------
    PickleError, EOFError, AttributeError, ValueError, KeyError, TypeError, IndexError
        If it is none.
    """
    histories, access, end, collections, streams = _Reader(BytesIO(content)).load()
    return Replay(histories, access, end.n_entries, end.digest, end.at, collections, streams)


@cache
def code_digest() -> bytes:
    """A digest of the code that makes a state of entries and gives it its meaning.

    To be asked for when a process starts: of the code that it runs. Code without its text has a
    digest that no other process has.
    """
    return _digest_of(sys.modules[name.rstrip(".")].__file__ for name in OUR_MODULES)


def _digest_of(packages: Iterable[str | None]) -> bytes:
    runs_on = platform.python_version(), np.__version__, sys.byteorder
    digest = hashlib.sha256(" ".join(runs_on).encode())
    for package in packages:
        modules = sorted(Path(package).parent.rglob("*.py")) if package else []
        for module in modules:
            digest.update(hashlib.sha256(module.read_bytes()).digest())
        if not modules:
            digest.update(secrets.token_bytes(32))
    return digest.digest()


class _Writer(pickle.Pickler):
    """Writes values alone."""

    def reducer_override(self, value: Any) -> Any:
        kind: Any = type(value)
        recipe = _RECIPES.get(kind)
        if recipe is not None:
            return recipe(value)
        if isinstance(value, type | FunctionType):
            return NotImplemented  # by its name, which is looked up when it is read
        if not _is_value(kind):
            raise NotAState(f"a state with a {kind.__name__}")
        if issubclass(kind, Enum):
            return NotImplemented
        names = _field_names(kind)
        if hasattr(value, "__dict__"):  # which has what was computed of the fields, too
            return __newobj__, (kind,), {name: getattr(value, name) for name in names}
        return _made, (kind, *(getattr(value, name) for name in names))


class _Reader(pickle.Unpickler):
    """Makes values alone."""

    def find_class(self, module: str, name: str) -> Any:
        known = _MAKERS.get((module, name))
        if known is not None:
            return known
        if module.startswith(OUR_MODULES) and module in sys.modules:
            found: Any = getattr(sys.modules[module], name, None)
            if isinstance(found, type) and _is_value(found):
                return found
        raise NotAState("something that is no value")


@cache
def _is_value(kind: Any) -> bool:
    """Whether it is an enumeration or a frozen dataclass, of the modules that values are from."""
    if not kind.__module__.startswith(OUR_MODULES):
        return False
    parameters = getattr(kind, "__dataclass_params__", None)
    return issubclass(kind, Enum) or (parameters is not None and parameters.frozen)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(kind))


def _made(kind: Any, *fields: Any) -> Any:
    """A value by its fields, which were checked when it was made first."""
    value = object.__new__(kind)
    for name, field in zip(_field_names(kind), fields, strict=True):
        object.__setattr__(value, name, field)
    return value


def _factor(name: ArrayName, numbers: NDArray[Any] | Pieces) -> Factor:
    return factor_named(name, lambda: _made(Factor, name[0], numbers))


def _array_of(content: bytes | Sequence[int], shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of whole numbers from bytes, or of Python's integers from a list."""
    if isinstance(content, bytes):
        return np.frombuffer(content, dtype=np.int64).reshape(shape)
    array = np.empty(len(content), dtype=object)
    array[:] = content
    return array.reshape(shape)


def _recipe_of_array(array: NDArray[Any]) -> Recipe:
    if array.dtype == object:
        return _array_of, ([int(one) for one in array.ravel().tolist()], array.shape)
    if array.dtype != np.int64:
        raise NotAState(f"a state with numbers of type {array.dtype}")
    return _array_of, (array.tobytes(), array.shape)


def _cost_of(*kept: Any) -> CostState:
    return CostState.of_kept(*kept)


def _recipe_of_cost(state: CostState) -> Recipe:
    return _cost_of, (*state.kept, state.n_cells_max, state.rows_per_unit, state.by)


def _read_only(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


_RECIPES: Final[dict[type[Any], Callable[[Any], Recipe]]] = {
    AppendOnly: lambda sequence: (AppendOnly, (sequence[:],)),
    GrowingSet: lambda numbers: (GrowingSet, (numbers.numbers,)),
    MappingProxyType: lambda mapping: (_read_only, (dict(mapping),)),
    Fraction: lambda number: (Fraction, (number.numerator, number.denominator)),
    Factor: lambda factor: (_factor, (name_of_factor(factor), factor.numbers)),
    QueryBlock: lambda block: (named, (block.query, block.partition, fingerprint(block))),
    CostState: _recipe_of_cost,
    np.ndarray: _recipe_of_array,
}
_MAKERS: Final[dict[tuple[str, str], Any]] = {
    (one.__module__, one.__qualname__): one
    for one in (
        *(AppendOnly, GrowingSet, Fraction, named),
        *(_array_of, _cost_of, _factor, _made, _read_only),
    )
}
