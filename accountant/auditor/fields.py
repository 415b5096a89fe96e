"""Reading the JSON of an entry strictly: its canonical text, known fields, exact types.

A missing field has no default, and an unknown field is not ignored: an auditor who reads half of an
entry has not read it. What is not valid is `Wrong`, which says why. Nothing here knows the kinds of
entry.

Moments are text that sorts. They lie in windows: of limits, of budgets that renew, and of the
epochs of streams.
"""

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias

from cube.encoding import canonical_json


class Wrong(Exception):
    """An entry that is not valid, or not valid in its place; the text says why."""


def window_start(window: str, at: str) -> str:
    """A text that sorts before every moment of the window of `at`, and after all earlier ones.

    >>> window_start("month", "2026-11-21T20:07:49.123+00:00")
    '2026-11'
    """
    if window == "week":
        day = dt.date.fromisoformat(at[:10])
        return (day - dt.timedelta(days=day.weekday())).isoformat()
    if window == "quarter":
        return f"{at[:5]}{(int(at[5:7]) - 1) // 3 * 3 + 1:02}"
    return at[: {"day": 10, "month": 7, "year": 4, "never": 0}[window]]


NAME_LENGTH_MAX: Final = 200
NUMBER_MAX: Final = (
    2**128
)  # of any number of an entry, whatever it is of: a precision is the largest
EPSILON_MAX: Final = 10**40  # of a budget or a limit: a number of this length is read at once

Json: TypeAlias = Any  # what `json` returns, before it is checked
Fields: TypeAlias = Mapping[str, Json]

_FRACTION: Final = re.compile(r"-?\d{1,4000}(/\d{1,4000})?", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", re.ASCII)


def parsed(body: str) -> Json:
    """The value of a JSON text, which must be the one canonical text of that value.

    Two texts of one value would have two digests, and different programs read an object with a
    repeated name differently.
    """
    try:
        value = _DECODER.decode(body)
        if canonical_json(value) == body:
            return value
    except (ValueError, RecursionError):
        raise Wrong(
            "its body is not JSON made of whole numbers, texts, lists and objects"
        ) from None
    raise Wrong("its body is not in canonical form")


def fields_of(value: Json, required: Sequence[str], optional: Sequence[str] = ()) -> Fields:
    """An object with all required fields, and no others than the optional ones."""
    if type(value) is not dict:
        raise Wrong(f"an object was expected, but {_type(value)} was found")
    missing = [name for name in required if name not in value]
    unknown = sorted(value.keys() - {*required, *optional})
    if missing:
        raise Wrong(f"the field {missing[0]} is missing")
    if unknown:
        raise Wrong(f"the field {unknown[0]!r} is unknown")
    return value


def list_of(fields: Fields, name: str, kind: type[Any]) -> list[Any]:
    """A list whose items are all of one JSON type."""
    found = fields[name]
    if type(found) is not list:
        raise Wrong(f"{name} is {_type(found)}, not a list")
    for item in found:
        if type(item) is not kind:
            raise Wrong(f"{name} holds {_type(item)}")
    return found


def text(fields: Fields, name: str) -> str:
    """A text."""
    found = fields[name]
    if type(found) is not str:
        raise Wrong(f"{name} is {_type(found)}, not a text")
    return found


def whole(fields: Fields, name: str, low: int = 0, high: int = NUMBER_MAX) -> int:
    """A whole number from `low` to `high`. True is not a number."""
    found = fields[name]
    if type(found) is not int:
        raise Wrong(f"{name} is {_type(found)}, not a whole number")
    if found < low:
        raise Wrong(f"{name} is {shown(found)}, below {low}")
    if found > high:
        raise Wrong(f"{name} is {shown(found)}, above {high}")
    return found


def shown(number: int) -> str:
    """A number for a message: one that is far too large is not written out."""
    return (
        str(number)
        if abs(number) <= NUMBER_MAX
        else f"a number of {number.bit_length()} bits is too large"
    )


def fraction(fields: Fields, name: str) -> Fraction:
    """An exact number, written as ``3`` or ``3/7``."""
    found = _exact(text(fields, name))
    if found is None:
        raise Wrong(f"{name} is not an exact number in lowest terms")
    return found


def moment(fields: Fields, name: str) -> str:
    """A moment; see `check_moment`."""
    return check_moment(text(fields, name), name)


def check_moment(written: str, name: str) -> str:
    """A moment as UTC text in the only form, which sorts by time."""
    is_one = _MOMENT.fullmatch(written) is not None
    if is_one:
        try:
            dt.datetime.fromisoformat(written)
        except ValueError:
            is_one = False
    if not is_one:
        raise Wrong(f"{name} is not a time of the form 2026-11-21T20:07:49.123+00:00")
    return written


def check_name(name: str) -> str:
    """A name, on one line."""
    if not 0 < len(name) <= NAME_LENGTH_MAX or not name.isprintable() or name != name.strip():
        raise Wrong(f"a name must have 1 to {NAME_LENGTH_MAX} printable characters")
    return name


def check_set(names: Sequence[str], name: str) -> tuple[str, ...]:
    """Sorted texts, without repeats."""
    if list(names) != sorted(set(names)):
        raise Wrong(f"{name} must be sorted, without duplicates")
    return tuple(names)


def optional(fields: Fields, name: str, read: Callable[[Fields, str], Any]) -> Any:
    """The result of `read`, or None for null."""
    return None if fields[name] is None else read(fields, name)


def one_of(fields: Fields, name: str, allowed: Sequence[str]) -> str:
    """A text that is one of a few."""
    found = text(fields, name)
    if found not in allowed:
        raise Wrong(f"{name} is {found!r}, but must be one of {', '.join(allowed)}")
    return found


@lru_cache(maxsize=256)  # nearly every query has the constant 0 and the scale 1
def _exact(written: str) -> Fraction | None:
    """The number for a text, if it is in lowest terms."""
    try:
        found = Fraction(written) if _FRACTION.fullmatch(written) else None
    except ZeroDivisionError:
        return None
    return found if str(found) == written else None


def _refused(written: str) -> Json:
    raise ValueError(written)


_DECODER: Final = json.JSONDecoder(parse_float=_refused, parse_constant=_refused)


def _type(value: Json) -> str:
    names = {bool: "true or false", int: "a number", str: "a text", list: "a list"}
    return names.get(type(value), "an object" if type(value) is dict else "nothing")
