"""The state of a long ledger, kept in a file beside the ledger's key, so that a start is short.

The file names the entry after which the state was written, by number and digest. A start reads the
texts of all entries up to there, and checks that their chain leads to that digest; it does not
check again what each of them means, which who wrote the state had done. Entries behind it are read
and checked as ever.

The file is sealed under a key derived from the ledger's, and is of one version of the code. One
changed byte, another ledger's file, other code, or anybody's who lacks the key, and every entry is
read. So it is if some entries, drawn at random, say something else than the state, or if a kept sum
of costs is below what the rows themselves cost a cell that is drawn at random. Each is looked at
alone: an entry is read as a start reads it, a cost is added up from what rows are. This finds
mistakes in writing or reading a checkpoint; the seal shows that it was not forged.

The state is a pickle of values. Nothing but the values that a history consists of is ever written
or read: frozen dataclasses and enumerations of the modules named below, by their fields alone, and
a few containers. Bytes of other code mean nothing, so `code_digest` is a part of every file. What a
process knows beside the entries is left out: which of them it made itself.

The file holds nothing that the ledger does not; it may be deleted at any time. The auditor never
reads it. Proof: proofs/checkpoint.md.
"""

import dataclasses
import hashlib
import hmac
import json
import pickle
import platform
import secrets
import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from copyreg import __newobj__  # type: ignore[attr-defined]
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.cost import CostState, is_below
from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import GENESIS, Charge, Entry, Measured
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.history import NOT_AN_ENTRY, Replay, TableHistory
from accountant.ledger.stores import durable_file
from accountant.ledger.values import AppendOnly, GrowingMap, GrowingSet, successor
from cube.encoding import (
    ArrayName,
    canonical_json,
    factor_named,
    fingerprint,
    name_of_factor,
    named,
)
from cube.grid import arrays_of
from cube.measurement import PlannedMeasurement
from cube.pieces import Pieces
from cube.query import Factor, QueryBlock, shape_of


def agrees_with_entry(replay: Replay, entry: Entry) -> bool:
    """Whether what an entry says is in a state: a charge as it was paid, a measurement's values."""
    body = read_text(entry.kind, entry.body)
    if not isinstance(body, Charge | Measured):
        return True
    history = replay.histories[entry.table]
    if isinstance(body, Charge):
        place = bisect_left(history.payments, entry.seq, key=lambda one: one.seq)
        found = history.payments[place]
        return found.seq == entry.seq and write(found.charge) == write(body)
    of_each = (*history.earlier, history)
    return any(_has_measured(one, body) for one in of_each)


def agrees_with_cell(history: TableHistory) -> bool:
    """Whether the sum of costs of a table is not below what its rows cost one cell, by themselves.

    The cell is from the system's entropy. Rows that were raised, and those that wait to be
    measured, are left out: the sum has these, too.
    """
    kept, later = history.cost.kept
    if kept is None or later:
        return not history.measurements  # a table without a sum has no rows
    rows, sizes = _rows_of(history), dict[str, int]()
    for axes, numbers in arrays_of(row.block for row in rows):
        sizes.update(zip(axes, shape_of(numbers), strict=True))
    for function in kept.functions:
        classes = zip(function.axes, function.classes, strict=True)
        sizes.update((axis, one.n_levels) for axis, one in classes)
    cell = {axis: secrets.randbelow(size) for axis, size in sizes.items()}
    return is_below(rows, kept.functions, cell, history.cost.rows_per_unit, history.cost.by)


def _rows_of(history: TableHistory) -> list[PlannedMeasurement]:
    """Rows that a table's cost is at least the cost of."""
    if history.growth is not None:  # what was measured of rows that have changed costs otherwise
        return list(history.paid)
    terms = history.gaussian.terms
    return [
        PlannedMeasurement(one.block, one.weight, terms=terms if one.is_gaussian else None)
        for place, one in enumerate(history.measurements)
        if place not in history.superseded
    ]


def _has_measured(history: TableHistory, body: Measured) -> bool:
    """Whether a history has the values of a measurement, and what it released."""
    charge = next((one.charge for one in history.payments if one.seq == body.charge), None)
    released = history.released_under(body.charge)
    if charge is None or (released is not None and released.released != body.released):
        return False
    found = history.measured_under(body.charge)
    return len(found) == len(body.lattice_values) and all(
        _is_average(charged) or one.lattice_values == values
        for charged, one, values in zip(charge.blocks, found, body.lattice_values, strict=True)
    )


def _is_average(charged: ChargedBlock) -> bool:
    """Whether what is known is not the value that was drawn, but an average with an earlier one."""
    return charged.is_gaussian and charged.raised_from is not None


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
            raise NotAState(f"a checkpoint cannot store a {kind.__name__}")
        if issubclass(kind, Enum):
            return kind, (value.value,)  # some releases of Python would write a call of getattr
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
        raise NotAState("this kind of object cannot be stored in a checkpoint")


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
    for name, known in zip(_field_names(kind), fields, strict=True):
        object.__setattr__(value, name, known)
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
        raise NotAState(f"a checkpoint can store int64 arrays, not {array.dtype}")
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
    GrowingMap: lambda pairs: (GrowingMap, (pairs.pairs,)),
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
        *(AppendOnly, GrowingMap, GrowingSet, Fraction, named),
        *(_array_of, _cost_of, _factor, _made, _read_only),
    )
}


HEAD: Final = b"tacit-checkpoint-2\n"
SEAL_BYTES: Final = hashlib.sha256().digest_size
LENGTH_BYTES: Final = 8
N_ENTRIES_COMPARED: Final = 16
NOT_A_STATE: Final = (*NOT_AN_ENTRY, EOFError, pickle.PickleError)

ReadEntries: TypeAlias = Callable[[int], Iterator[Entry]]


def checkpoint_beside(key: Path) -> Path:
    """The path of the checkpoint of the ledger with a key: next to the key.

    >>> checkpoint_beside(Path("people.ledger.key")).name
    'people.ledger.checkpoint'
    """
    return key.with_name(key.name.removesuffix(".key") + ".checkpoint")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file, and the key of its ledger.

    Parameters
    ----------
    path : Path
        The file of the checkpoint, which need not exist.
    key : bytes
    code : bytes, optional
        A digest of the code that this process runs.
    """

    path: Path
    key: bytes
    code: bytes = field(default_factory=code_digest)

    def read(self, entries_after: ReadEntries) -> tuple[Replay, int]:
        """The state after all entries of a ledger, and how many of them were not checked anew.

        Parameters
        ----------
        entries_after : callable
            Every entry with a higher number, in order.

        Raises
        ------
        ValueError
            If an entry cannot follow those before it; whatever is wrong with the file raises
            nothing.
        """
        kept = self._content()
        known = None if kept is None else kept.state(entries_after)
        if known is None:
            return Replay().read(entries_after(0)), 0
        n_known = known.n_entries
        return known.read(entries_after(n_known)), n_known

    def write(self, replay: Replay) -> int:
        """Write a state; the number of entries that the file then is of.

        Raises
        ------
        OSError, CannotStart, NotAState
            If the file cannot be written; an earlier one is still whole.
        """
        for history in replay.histories.values():
            history.cost.summed()  # or it would be kept as rows, to be added up at each start
        about = {"n_entries": replay.n_entries, "digest": replay.head, "code": self.code.hex()}
        text = canonical_json(about).encode()
        content = b"".join([len(text).to_bytes(LENGTH_BYTES, "big"), text, state_bytes(replay)])
        durable_file.drop_drafts(self.path)
        durable_file.replace(self.path, HEAD + self._seal(content) + content)
        return replay.n_entries

    def _content(self) -> "_Kept | None":
        """The content of the file; None if there is no file, or it was changed."""
        try:
            whole = self.path.read_bytes()
        except OSError:
            return None
        start = len(HEAD) + SEAL_BYTES
        seal, content = whole[len(HEAD) : start], whole[start:]
        if whole[: len(HEAD)] != HEAD or not hmac.compare_digest(seal, self._seal(content)):
            return None
        with suppress(*NOT_AN_ENTRY):
            behind = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "big")
            about = json.loads(content[LENGTH_BYTES:behind])
            if about["code"] == self.code.hex() and about["n_entries"] > 0:
                return _Kept(int(about["n_entries"]), str(about["digest"]), content[behind:])
        return None

    def _seal(self, content: bytes) -> bytes:
        own = hmac.digest(self.key, HEAD, "sha256")  # no other use of the key gives the same
        return hmac.digest(own, content, "sha256")


@dataclass(frozen=True, slots=True)
class _Kept:
    """The content of a file: the state after a number of entries."""

    n_entries: int
    digest: str
    content: bytes

    def state(self, entries_after: ReadEntries) -> Replay | None:
        """The state, if the entries of the ledger up to there are those that it is of."""
        drawn = {1 + secrets.randbelow(self.n_entries) for _ in range(N_ENTRIES_COMPARED)}
        passed = _Passed().read(islice(entries_after(0), self.n_entries), drawn)
        if (passed.n_entries, passed.digest) != (self.n_entries, self.digest):
            return None
        with suppress(*NOT_A_STATE):
            replay = state_of(self.content)
            is_of_it = (replay.n_entries, replay.head) == (self.n_entries, self.digest)
            if (
                is_of_it
                and all(agrees_with_entry(replay, entry) for entry in passed.drawn)
                and all(map(agrees_with_cell, replay.histories.values()))
            ):
                return passed.noted_in(replay)
        return None


class _Passed:
    """The entries of a beginning of a ledger, by their texts alone.

    `n_entries` and `digest` are of the last one that follows from those before it.
    """

    def __init__(self) -> None:
        self.n_entries = 0
        self.digest = GENESIS
        self.drawn: list[Entry] = []
        self._numbers: dict[str, list[int]] = {}

    def read(self, entries: Iterable[Entry], drawn: Collection[int]) -> Self:
        """Pass entries, up to the first that does not follow; keep those of some numbers."""
        for entry in entries:
            if not entry.follows(self.digest):
                break
            self.n_entries, self.digest = entry.seq, entry.digest
            self._numbers.setdefault(entry.table, []).append(entry.seq)
            if entry.seq in drawn:
                self.drawn.append(entry)
        return self

    def noted_in(self, replay: Replay) -> Replay:
        """The same state of a process that has read these entries."""
        for table, numbers in self._numbers.items():
            if table in replay.histories:  # not a stream, nor nothing
                history = replay.histories[table]
                replay.histories[table] = successor(history, read=GrowingSet(numbers))
        return replay
