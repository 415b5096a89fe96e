"""The gates of the holders of one federated table, over the network: `RemoteGates`.

A holder is asked what its table is before anything else is, and again after a call failed: its
declaration must be the coordinator's, but for the axis of the holders. Which generation of its data
is meant is in every request, so one whose data was replaced meanwhile refuses.

A coordinator starts although a holder cannot be reached: its state is then the one in the ledger.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from accountant.gate import Asked, Told, schema_digest, states_in, written_states
from cube.axis import N_LEVELS_MAX
from cube.encoding import canonical_json, declare
from cube.refusals import ConfigurationInvalid, Refused, SourceUnavailable
from cube.schema import Schema
from proxy.sources.holders.calls import HolderCalls, exact_number
from proxy.sources.location import HeldTable

DESCRIBE_SECONDS: Final = 10.0  # the most that a start waits for a holder
N_AT_ONCE: Final = 16
BYTES_OF_A_VALUE: Final = 24  # the text of a noisy value, at most
BYTES_BESIDE: Final = 2**12
_STATE: Final = re.compile(r"[0-9a-f]{16}:[0-9]{1,12}", re.ASCII)
SHOWN_LENGTH_MAX: Final = 64
DIGEST_LENGTH_MAX: Final = 200
BOUNDS: Final = ("rows_per_unit_max", "rows_per_unit_max_by")  # on which every price depends


Result = TypeVar("Result")
Periods: TypeAlias = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, slots=True)
class HolderTable:
    """What a holder says of its table.

    Parameters
    ----------
    state : str
    left : Fraction
        What the coordinator may still spend there.
    periods : tuple of (int, int, str)
        Of a table that grows: levels from the first to before the second, and a digest of their
        rows.
    """

    state: str
    left: Fraction
    periods: Periods

    @property
    def horizon(self) -> int:
        """The number of readable levels."""
        return self.periods[-1][1] if self.periods else 0


class GatesOfHolders:
    """The gates of the holders of one table. Thread-safe.

    Parameters
    ----------
    schema : Schema
        Of the federated table.
    held : HeldTable
        Where its holders are.
    """

    def __init__(self, schema: Schema, held: HeldTable) -> None:
        self._schema = schema
        self._held = held
        self._calls = [HolderCalls(one, schema.table) for one in held.holders]
        self._described: dict[int, str] = {}  # the states of holders that were asked
        self._states: dict[int, str] = {}  # on which everything is agreed

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - of the port
        """A keyed digest of the names of the holders and of their tables, in their order."""
        named = [[one.name, one.table] for one in self._held.holders]
        text = canonical_json(["holders", named])
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - of the port
        """The holders with the state of the table of each, as text.

        Of a holder that cannot be asked, or has another table than is declared, what `like` says is
        repeated.

        Raises
        ------
        ConfigurationInvalid
            If there is such a holder, and `like` does not say anything of it.
        """
        known = states_in(like)
        found = self._of_each(self._state_or_refusal)
        states, named = {}, {}
        for level, (holder, one) in enumerate(zip(self._held.holders, found, strict=True)):
            state = known.get(holder.name, one) if isinstance(one, Refused) else one
            if isinstance(state, Refused):
                raise ConfigurationInvalid(state.message, hint=state.hint)
            states[level] = named[holder.name] = state
        self._states = states
        return written_states(named)

    def generation(self, level: int) -> str:
        """The state of a holder's table on which everything is agreed."""
        return self._states[level]

    def left(self) -> list[Fraction | None]:
        """What each holder's budget and limits leave this ledger now, all asked at once.

        None for one that cannot be asked.
        """

        def left_at(level: int) -> Fraction | None:
            try:
                return self._told(level).left
            except Refused:
                return None

        return self._of_each(left_at)

    def check(self, level: int, asked: Asked) -> None:
        """Find out whether a holder would charge for this now. Charges nothing.

        Raises
        ------
        Refused
            As the holder refuses it.
        SourceUnavailable
            If it cannot be asked, or has another table than is declared.
        """
        with self._met(level):
            self._calls[level].price(asked.text)

    def measure(self, level: int, asked: Asked) -> Told:
        """Have a holder charge and measure; what it tells, perhaps again.

        Raises
        ------
        Refused
            As the holder refuses it: it has not charged, and will not.
        SourceUnavailable
            If it cannot be asked, or answers with nonsense: it may have charged.
        """
        with self._met(level):
            text = self._calls[level].measure(asked.text)
            try:
                return _read(text, asked)
            except ValueError:
                raise self._calls[level].unavailable(
                    "answered something that cannot be read",
                    "Its owner should look at its log. What it charged is answered again, free, "
                    "once it answers well.",
                ) from None

    def close(self) -> None:
        """Close all connections."""
        for one in self._calls:
            one.close()

    def _of_each(self, call: Callable[[int], Result]) -> list[Result]:
        """What a call gives for each holder, of many at the same time."""
        with ThreadPoolExecutor(min(N_AT_ONCE, len(self._calls))) as pool:
            return list(pool.map(call, range(len(self._calls))))

    @contextmanager
    def _met(self, level: int) -> Iterator[None]:
        """Ask a holder that has told what its table is; after a failure it is asked again."""
        if level not in self._described:
            self._described[level] = self._told(level).state
        try:
            yield
        except SourceUnavailable:
            self._described.pop(level, None)
            raise

    def _state_or_refusal(self, level: int) -> str | Refused:
        if level not in self._described:
            try:
                self._described[level] = self._told(level).state
            except Refused as refusal:
                return refusal
        return self._described[level]

    def _told(self, level: int) -> HolderTable:
        """A holder's table, which is as declared."""
        calls = self._calls[level]
        place = calls.place
        told = calls.describe(min(DESCRIBE_SECONDS, place.timeout))
        schema = replace(self._schema.of_one_holder, table=place.table)
        own, other = json.loads(declare(schema, version="")), _declaration_in(told.declaration)
        is_alike = hmac.compare_digest(told.schema_digest.encode(), schema_digest(schema).encode())
        if not is_alike or any(own.get(name) != other.get(name) for name in BOUNDS):
            what = _difference(own, other)
            raise calls.unavailable(
                f"declares its table {place.table} otherwise: {what}",
                "Both sides must declare the same columns, with the same levels.",
            )
        try:
            if _STATE.fullmatch(told.state) is None:
                raise ValueError("no state")  # noqa: TRY301 - what follows raises it, too
            left = exact_number(told.epsilon_left)
            return HolderTable(str(told.state), left, _periods_in(told.periods))
        except ValueError:
            raise calls.unavailable("answered something that cannot be read") from None


class GrowingGates(GatesOfHolders):
    """The gates of the holders of a table that grows: it is readable as far as at each of them."""

    def reach(self) -> int:
        """The number of levels that every holder can read.

        Raises
        ------
        SourceUnavailable
            If one cannot be asked.
        """
        return min(one.horizon for one in self._all_told())

    def read_up_to(self, horizon: int) -> "HeldPeriods":
        """The rows of so many levels, as the holders have them now.

        Raises
        ------
        SourceUnavailable
            If a holder cannot be asked, or cannot read so far.
        """
        found = self._all_told()
        for level, one in enumerate(found):
            if one.horizon < horizon:
                raise self._calls[level].unavailable("has not closed all of these periods yet")
        self._states = {level: one.state for level, one in enumerate(found)}
        names = (one.name for one in self._held.holders)
        periods = zip(names, (one.periods for one in found), strict=True)
        return HeldPeriods(tuple(periods))

    def _all_told(self) -> list[HolderTable]:
        return self._of_each(self._told)


@dataclass(frozen=True, slots=True)
class HeldPeriods:
    """The readable rows of all holders, known by the digests that each has of its own."""

    of_holders: tuple[tuple[str, Periods], ...]

    def period_fingerprint(self, start: int, end: int, key: bytes, like: str = "") -> str:  # noqa: ARG002 - made in one way
        """A keyed digest of the holders' digests of all periods that touch these levels."""
        touching = [
            [name, [list(one) for one in periods if one[0] < end and start < one[1]]]
            for name, periods in self.of_holders
        ]
        return hmac.new(key, canonical_json(touching).encode(), hashlib.sha256).hexdigest()

    def measure(self, _grouping: object) -> NoReturn:
        """Refuse: the rows are where the holders are."""
        raise TypeError("the rows of a federated table are measured by its holders")

    measure_units = measure


def _periods_in(told: Sequence[Any]) -> Periods:
    """Periods that a holder sent; ValueError if they do not follow each other."""
    found, at = [], 0
    for one in told:
        if one.start != at or not at < one.end <= N_LEVELS_MAX:
            raise ValueError("no period")
        if not 0 < len(one.digest) <= DIGEST_LENGTH_MAX:
            raise ValueError("no digest")
        found.append((int(one.start), int(one.end), str(one.digest)))
        at = one.end
    return tuple(found)


def _read(text: str, asked: Asked) -> Told:
    """What a holder tells; ValueError if it is nothing, or more than was asked for."""
    n_values = sum(one.charged.block.n_rows for one in asked.rows)
    n_values += sum(one.charged.n_released for one in asked.statistics)
    if len(text) > BYTES_BESIDE + BYTES_OF_A_VALUE * n_values:
        raise ValueError("the reply of a holder is too long")
    return Told.read(text)


def _declaration_in(text: str) -> dict[str, Any]:
    """A declaration that a holder sent; empty if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _difference(own: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """The first thing that two declarations have differently."""
    ours, theirs = _columns(own), _columns(told)
    if not theirs:
        return "what it declares cannot be read"
    for name in ours:
        if name not in theirs:
            return f"it has no column {_shown(name)}"
    for name in theirs:
        if name not in ours:
            return f"it has a column {_shown(name)}, too"
    for name, column in ours.items():
        for key, value in column.items():
            other = theirs[name].get(key)
            if value != other:
                return f"{_values(key, value, other)} of its column {_shown(name)} differ"
    bounds = (name for name in BOUNDS if own.get(name) != told.get(name))
    return f"{next(bounds, 'its neighbours, or its release of Tacit')} differ"


def _columns(declaration: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = declaration.get("columns")
    every = listed if isinstance(listed, list) else []
    return {str(one.get("name")): one for one in every if isinstance(one, dict)}


def _values(key: str, value: object, other: object) -> str:
    """A key of a column, and of levels the first one that only one side has."""
    if not isinstance(value, list) or not isinstance(other, list):
        return f"the values of {key} ({_shown(value)} here, {_shown(other)} there)"
    here, there = list(map(str, value)), list(map(str, other))
    alone = [one for one in here if one not in set(there)]
    alone += [one for one in there if one not in set(here)]
    return f"the {key} ({_shown(alone[0])} is on one side only)" if alone else f"the {key} in order"


def _shown(value: object) -> str:
    """A value that another organisation sent, as it may be printed."""
    text = str(value)
    cut = text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}..."
    return "".join(one if one.isprintable() else "?" for one in cut)
