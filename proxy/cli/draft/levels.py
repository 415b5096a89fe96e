"""What rows say about columns, for a draft: types of text, and levels for owners who ask.

The rows are gone through once, for all columns together; what a column needs is kept while it may
still matter. Reading levels is not private: used only by `tacit init --read-levels-from-data`; the
server never reads levels from data. Bounds are rounded outwards to numbers that somebody might have
written down, since the exact ones are two rows: what is publicly known is the owner's to say.

Names and strings are written as TOML here, for all of a draft.
"""

import datetime as dt
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cube.axis import INTEGER_MAX, N_LEVELS_MAX
from proxy.sources.axis_sql import DAY, OFFSET, TIME, ZONED
from proxy.sources.problems import BARE_KEY


def toml_string(text: str) -> str:
    r"""A basic string.

    >>> print(toml_string('say "\t"'))
    "say \"\t\""
    """
    # JSON's escapes are valid TOML, except for one control character that JSON does not escape.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A key, quoted if necessary.

    >>> toml_key("age"), toml_key("my age")
    ('age', '"my age"')
    """
    return name if BARE_KEY.fullmatch(name) else toml_string(name)


N_LEVELS_LISTED_MAX = 1000  # a longer list is free text or a key, and is not copied
N_STEPS = 1000  # of a measure that is neither whole nor money
CENT = Decimal("0.01")
DAYS_OF_A_YEAR: Final = 366
CLOSE: Final = 1e-6  # of a number of cents to a whole one
N_UNITS_MAX: Final = 5_000_000  # beyond, it is not looked at what is the same in all rows of a unit

WHOLE: Final = r"\s*[+-]?(0|[1-9][0-9]{0,17})\s*"
REAL: Final = r"\s*[+-]?((0|[1-9][0-9]{0,14})(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?\s*"
WITH_COMMAS: Final = (
    r"\s*[+-]?(([0-9]{1,3}([. ][0-9]{3})*|[0-9]+)(,[0-9]+)?|[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?)\s*"
)
TIME_OF_DAY: Final = TIME.replace(
    "[0-9]{2}:[0-9]{2}(:[0-9]{2}", "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]"
)
# What fields may be, the first that all of a column are; what else they are is text.
PATTERNS: Final = {
    "BOOLEAN": "(?i:true|false|yes|no)",
    "BIGINT": WHOLE,
    "DOUBLE": REAL,
    "DATE": DAY,
    "TIMESTAMP": f"{DAY}({TIME_OF_DAY})?",
    ZONED: f"{DAY}({TIME_OF_DAY}{OFFSET}?)?",
}


@dataclass(slots=True)
class Seen:
    """What has been seen of one column.

    Parameters
    ----------
    is_text : bool
        Whether it is of a file of text, so that its type is looked for.
    types : dict
        What it may still be, by name in the order of preference, with the pattern of each.
    keeps_levels : bool
        Whether levels are wanted.
    written : str
        Its name in the file, if it is to be noted that the name comes again as a value.
    """

    name: str
    is_text: bool
    decimal: str = "."
    keeps_levels: bool = False
    written: str = ""
    types: dict[str, str] = field(default_factory=dict)
    has_some: bool = False
    has_null: bool = False
    has_commas: bool = False
    may_have_commas: bool = True
    comes_again: bool = False
    low: Any = None
    high: Any = None
    is_whole: bool = True
    is_money: bool = True
    texts: set[str] | None = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.is_text:
            self.types = dict(PATTERNS)

    @property
    def type_name(self) -> str:
        """The type of a column of text."""
        return next(iter(self.types), "VARCHAR") if self.has_some else "VARCHAR"

    @property
    def has_decimal_commas(self) -> bool:
        """Whether all its fields are numbers, some with commas, though none was to be."""
        return self.is_text and self.has_some and self.has_commas and self.may_have_commas

    def add(self, values: pa.Array, nulls: pa.Array | None = None) -> None:
        """Take in some values of the column; which are NULL, if others have no value here, too."""
        has_null = values.null_count > 0 if nulls is None else pc.any(nulls).as_py()
        self.has_null = self.has_null or has_null
        some = values.drop_null() if values.null_count else values
        if not len(some):
            return
        self.has_some = True
        if self.is_text:
            some = self._add_text(some)
        if some is not None and self.keeps_levels:
            self._add_levels(some)

    def _add_text(self, some: pa.Array) -> pa.Array | None:
        """Take in fields; they come back as numbers, days or texts, if levels are wanted."""
        once = pc.unique(some)
        if self.written:
            plain = pc.utf8_lower(pc.utf8_trim_whitespace(once))
            self.comes_again |= pc.any(pc.equal(plain, self.written)).as_py()
        if self.decimal == "." and self.may_have_commas:
            self.may_have_commas = _all_match(once, WITH_COMMAS)
            self.has_commas |= pc.any(pc.match_substring(once, ",")).as_py()
        number = once
        if self.decimal == ",":
            number = pc.replace_substring(pc.replace_substring(once, ".", "?"), ",", ".")
        found: dict[str, str] = {}
        typed: pa.Array | None = None
        for kind, pattern in self.types.items():
            fields = number if kind in {"BIGINT", "DOUBLE"} else once
            if not _all_match(fields, pattern):
                continue
            parsed = _parsed(fields, kind)
            if parsed is not None:
                found[kind] = pattern
                typed = parsed if typed is None else typed
        # Bounds so far stay true: whole numbers are numbers, and days are moments.
        self.types = found
        if self.keeps_levels:
            self._add_listed(once)
        return typed

    def _add_levels(self, some: pa.Array) -> None:
        kind = some.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            if self.texts is not None:
                self._add_listed(pc.unique(some))
        elif not pa.types.is_boolean(kind):
            self._add_ends(some)

    def _add_listed(self, once: pa.Array) -> None:
        if self.texts is None:
            return
        if len(once) <= N_LEVELS_LISTED_MAX:
            self.texts.update(once.to_pylist())
        if len(once) > N_LEVELS_LISTED_MAX or len(self.texts) > N_LEVELS_LISTED_MAX:
            self.texts = None

    def _add_ends(self, some: pa.Array) -> None:
        try:
            ends = pc.min_max(some).as_py()
        except (ValueError, OverflowError):  # a moment that Python has no value for
            return
        low, high = ends["min"], ends["max"]
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        if pa.types.is_floating(some.type) and (self.is_whole or self.is_money):
            numbers = some.to_numpy(zero_copy_only=False)
            self.is_whole &= bool(np.all(numbers == np.round(numbers)))
            cents = numbers * 100
            self.is_money &= bool(np.all(np.abs(cents - np.round(cents)) < CLOSE))


def _all_match(texts: pa.Array, pattern: str) -> bool:
    found: bool = pc.all(pc.match_substring_regex(texts, f"^(?:{pattern})$")).as_py()
    return found


def _parsed(texts: pa.Array, kind: str) -> pa.Array | None:
    """Fields as what they are written as; None if one of them is no such value."""
    try:
        match kind:
            case "BOOLEAN":
                return pa.array([], pa.bool_())
            case "BIGINT" | "DOUBLE":
                plain = pc.utf8_ltrim(pc.utf8_trim_whitespace(texts), characters="+")
                return pc.cast(plain, pa.int64() if kind == "BIGINT" else pa.float64())
            case _:
                return pc.cast(pc.utf8_slice_codeunits(texts, 0, 10), pa.date32())
    except pa.ArrowInvalid:
        return None


class UnitsSeen:
    """What the rows say about whom they are about.

    Parameters
    ----------
    names : sequence of str
        The columns that may be the same in all rows of a unit.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.has_null = False
        self.has_several = False
        self._codes: dict[Any, int] = {}
        self._values: dict[str, NDArray[np.int64]] = {name: np.empty(0, np.int64) for name in names}

    @property
    def constant(self) -> tuple[str, ...]:
        """The columns that are the same in all rows of everybody."""
        return tuple(self._values) if self.has_several else ()

    def add(self, keys: pa.Array, batch: dict[str, pa.Array]) -> None:
        """Take in some rows: whom each is about, and the columns' values."""
        if keys.null_count:
            self.has_null = True
            there = pc.is_valid(keys)
            keys, batch = (
                keys.filter(there),
                {name: batch[name].filter(there) for name in self._values},
            )
        if not len(keys) or (self.has_several and not self._values):
            return
        n_before = len(self._codes)
        coded = pc.dictionary_encode(keys)
        known = [
            self._codes.setdefault(key, len(self._codes)) for key in coded.dictionary.to_pylist()
        ]
        codes = np.asarray(known, np.int64)[coded.indices.to_numpy()]
        _, first = np.unique(codes, return_index=True)
        if len(first) < len(codes) or (known and min(known) < n_before):
            self.has_several = True
        if len(self._codes) > N_UNITS_MAX:
            self._values = {}
        for name in list(self._values):
            ids = _ids(batch[name])
            values = np.concatenate(
                [self._values[name], np.zeros(len(self._codes) - n_before, np.int64)]
            )
            new = first[codes[first] >= n_before]
            values[codes[new]] = ids[new]
            self._values[name] = values
            if np.any(values[codes] != ids):
                del self._values[name]


def _ids(values: pa.Array) -> NDArray[np.int64]:
    """A number for each value, equal where values are."""
    coded = pc.dictionary_encode(values, null_encoding="encode")
    ids = np.asarray([hash((type(one), one)) for one in coded.dictionary.to_pylist()], np.int64)
    return ids[coded.indices.to_numpy()] if len(ids) else np.empty(0, np.int64)


def found_kind(seen: Seen, kind: str) -> str:
    """The kind of a column once its rows were read: too many whole numbers are no levels."""
    if kind != "integer" or seen.low is None:
        return kind
    first, last = _nice_ends(Decimal(seen.low), Decimal(seen.high))
    return "measure" if last - first >= N_LEVELS_MAX and _bounds(seen) else "integer"


def found_levels(seen: Seen, kind: str) -> list[str]:
    """Lines of TOML with the levels that occur; empty if there are none or too many."""
    null = ["null = true"] if seen.has_null else []
    match kind:
        case "category":
            lines = _listed(seen)
        case "integer" | "date" | "timestamp":
            lines = _range(seen, kind)
        case "measure":
            lines = _bounds(seen)
        case _:
            return null
    return [*lines, *null] if lines else []


def _listed(seen: Seen) -> list[str]:
    if not seen.texts:
        return []
    listed = "".join(f"  {toml_string(level)},\n" for level in sorted(seen.texts))
    return [f"levels = [\n{listed}]"]


def _range(seen: Seen, kind: str) -> list[str]:
    low, high = seen.low, seen.high
    if low is None:
        return []
    if kind == "timestamp":
        return _moments(low, high)
    if kind == "date" and (high - low).days >= N_LEVELS_MAX - 2 * DAYS_OF_A_YEAR:
        return []
    if kind == "date":
        return [f"low = {low.year:04}-01-01", f"high = {high.year:04}-12-31"]
    first, last = _nice_ends(Decimal(low), Decimal(high))
    return [f"low = {first}", f"high = {last}"] if max(abs(first), abs(last)) <= INTEGER_MAX else []


def _moments(low: dt.date, high: dt.date) -> list[str]:
    """Whole years, by the hour or by the finest coarser step that makes an axis of them."""
    first, last = dt.date(low.year, 1, 1), dt.date(high.year, 12, 31)
    if (last - first).days >= N_LEVELS_MAX:
        return []
    n_hours = ((last - first).days + 1) * 24
    step = "hour" if n_hours <= N_LEVELS_MAX else "day"
    return [f"low = {first}", f"high = {last}", f'step = "{step}"']


def _bounds(seen: Seen) -> list[str]:
    """Bounds and a step: 1 where every number is whole, 0.01 where all are money."""
    if seen.low is None:
        return []
    low, high = Decimal(repr(seen.low)), Decimal(repr(seen.high))
    if 0 < low <= high - low:
        low = Decimal(0)  # a sum counts nothing as nothing
    first, last = _nice_ends(low, high)
    if max(abs(first), abs(last)) > INTEGER_MAX:
        return []
    step = Decimal(1) if seen.is_whole else CENT
    if not (seen.is_whole or seen.is_money) or (last - first) / step >= N_LEVELS_MAX:
        step = Decimal(1).scaleb(math.floor(((max(last - first, CENT)) / N_STEPS).log10()))
    first = math.floor(first / step) * step
    last = max(math.ceil(last / step) * step, first + step)
    return [f"low = {first:f}", f"high = {last:f}", f"step = {step:f}"]


def _nice_ends(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Two numbers around two others, at most a fifth of their distance away from each.

    They are multiples of 1, 2 or 5 of some power of ten; of whole numbers, whole ones.

    >>> [str(end) for end in _nice_ends(Decimal(36), Decimal(85))]
    ['35', '85']
    >>> [str(end) for end in _nice_ends(Decimal(1998), Decimal(2024))]
    ['1995', '2025']
    """
    is_whole = low == low.to_integral_value() and high == high.to_integral_value()
    distance = (high - low) / 5 or abs(high) / 10
    if is_whole:
        distance = max(distance, Decimal(1))
    elif not distance:
        distance = CENT
    power = Decimal(1).scaleb(math.floor(distance.log10()))
    unit = max(step * power for step in (1, 2, 5) if step * power <= distance)
    first, last = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return (Decimal(int(first)), Decimal(int(last))) if is_whole else (first, last)
