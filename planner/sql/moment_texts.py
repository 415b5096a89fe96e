"""Reads texts of days, moments and intervals as PostgreSQL does.

    2024-06-01     20240601     6/1/2024     1 Jun 2024     2024-06-01T10:20:30.5Z
    2024-06-01 10:20 PM     Sat Jun 01 10:20:30 2024     2024-06-01 10:20:30 Europe/Oslo

What a client binds to a date or a timestamp is read here. A text that PostgreSQL refuses is
refused; so is what lies outside of the years 1 to 9999, which no column holds.

    1 year 2 mons 3 days 04:05:06     @ 3 months ago     -1 day +02:03     1-2     3 4:05:06
    P1Y2M3DT4H5M6.7S     P0001-02-03T04:05:06     1.5 decades

One strict reader for literals, casts and parameters. What PostgreSQL 15 refuses is refused here; a
test holds the two to the same answers. A fraction of a unit is spilled into lower units as there: a
month has 30 days, a day 24 hours, a fraction of a year is rounded to months.
"""

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

_MONTHS: Final = {
    name: place
    for place, names in enumerate(
        [
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ],
        start=1,
    )
    for name in names.split()
}
_DAYS: Final = (
    r"(?:sun(?:day)?|mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|"
    r"fri(?:day)?|sat(?:urday)?)"
)
_NAMED: Final = f"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
# Hours east of Greenwich, of the abbreviations that PostgreSQL knows by default and clients send.
_ABBREVIATIONS: Final = {
    **dict.fromkeys(("z", "zulu", "utc", "ut", "uct", "gmt", "wet"), 0.0),
    "bst": 1,
    "cet": 1,
    "west": 1,
    "cest": 2,
    "eet": 2,
    "sast": 2,
    "ist": 2,
    "eest": 3,
    "msk": 3,
    "jst": 9,
    "kst": 9,
    "aest": 10,
    "aedt": 11,
    "nzst": 12,
    "nzdt": 13,
    "ast": -4,
    "adt": -3,
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
    "akst": -9,
    "hst": -10,
}
_ZONES: Final = {name.casefold(): name for name in available_timezones() if "/" in name}

_CLOCK: Final = re.compile(
    r"(?:(?<=[\d\s])t\s*|(?<![\d:.t]))(?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?P<fraction>\.\d*)?)?(?![\d:])"
)
_SHORT_CLOCK: Final = re.compile(  # right behind a day
    r"(?:\s*t\s*|\s+)(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?P<fraction>\.\d+)?"
    r"(?=$|[\sz+-])"
)
_ZONE: Final = re.compile(
    r"\s*(?:(?P<half>am|pm)\b)?\s*(?P<name>[a-z]+(?:/[a-z_+-]+\d*)*)?"
    r"(?P<gap>\s*)(?P<offset>(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2})(?::?(?P<seconds>\d{2}))?)?)?"
)
_ERA: Final = re.compile(r"\s+(?P<era>ad|bc)$")
_DATES: Final = (
    re.compile(r"(?P<y>\d{3,6})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})"),
    re.compile(r"(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<y>\d{3,6})"),
    re.compile(r"(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<c>\d{1,2})"),
    re.compile(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})"),
    re.compile(r"(?P<y>\d{4})[.-](?P<day_of_year>\d{3})"),
    re.compile(r"(?P<yy>\d{2})(?P<m>\d{2})(?P<d>\d{2})"),
    re.compile(r"j(?P<julian>\d{1,7})"),
    re.compile(rf"{_NAMED}[\s.-]*(?P<d>\d{{1,2}})(?:\s*,\s*|[\s-]+)(?P<y>\d{{4,6}})"),
    re.compile(rf"(?P<d>\d{{1,2}})[\s-]*{_NAMED}[\s,-]*(?P<y>\d{{4,6}})"),
    re.compile(rf"(?P<y>\d{{4,6}})[\s-]*{_NAMED}[\s-]*(?P<d>\d{{1,2}})"),
)
_WEEKDAY: Final = re.compile(rf"{_DAYS}\b[\s,.]*")
_JULIAN_OF_YEAR_1: Final = 1_721_425
_CENTURY_FROM: Final = 70  # of two digits: 70 is 1970, 69 is 2069
_MICROSECONDS: Final = 10**6
_HOURS_MAX, _ZONE_HOURS_MAX = 24, 15


class NoMoment(ValueError):
    """A text that is no day and no moment."""


class OutOfRange(NoMoment):
    """A text that is written like one, and is none: the 30th of February."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a text says.

    Parameters
    ----------
    day : datetime.date
        The day that is written, whatever the clock says.
    local : datetime.datetime
        As the clocks of its zone show it.
    zone : datetime.tzinfo, optional
        None if the text names none.
    """

    day: dt.date
    local: dt.datetime
    zone: dt.tzinfo | None = None

    def instant(self, session: dt.tzinfo) -> dt.datetime:
        """The moment, in the zone of the text or else of the session."""
        return self.local.replace(tzinfo=self.zone or session).astimezone(dt.UTC)


def read_moment(text: str, order: str = "MDY") -> Moment:
    """What a text means as a date or a timestamp.

    Parameters
    ----------
    text : str
    order : str
        Of days and months where both are numbers: ``MDY``, ``DMY`` or ``YMD``.

    Raises
    ------
    NoMoment, OutOfRange
        If it is none.

    >>> read_moment("2024-06-01T10:20:30.123Z").local.isoformat()
    '2024-06-01T10:20:30.123000'
    >>> read_moment("1/6/2024", "DMY").local.isoformat()
    '2024-06-01T00:00:00'
    """
    if not text.isascii():
        raise NoMoment(text)
    folded = " ".join(text.lower().split())
    if folded == "epoch":
        day = dt.date(1970, 1, 1)
        return Moment(day, dt.datetime.combine(day, dt.time()), dt.UTC)
    folded = folded.replace("allballs", "00:00:00z")
    try:
        return _read(folded, order)
    except OverflowError:
        raise OutOfRange(text) from None


def _read(text: str, order: str) -> Moment:
    clock = _CLOCK.search(text)
    if clock is not None:
        return _around(clock, text, order)
    day, end = _day_at(text, order)
    clock = _SHORT_CLOCK.match(text, end)
    behind = _behind(text[end if clock is None else clock.end() :])
    if clock is not None:
        return Moment(day, _at(day, clock, behind["half"]), _zone(behind))
    if behind["half"] or (not behind["name"] and not behind["gap"] and behind["sign"] == "-"):
        raise NoMoment(text)
    return Moment(day, dt.datetime.combine(day, dt.time()), _zone(behind))


def _around(clock: "re.Match[str]", text: str, order: str) -> Moment:
    """A text with a clock in it, which may stand before the year."""
    before = text[: clock.start()].strip()
    behind = _ZONE.match(text, clock.end())
    if not before or behind is None:
        raise NoMoment(text)
    if behind["name"] in ("ad", "bc"):
        rest, behind = f"{before} {text[clock.end() :].strip()}", _behind("")
    else:
        rest = f"{before} {text[behind.end() :].strip()}".strip()
    day, end = _day_at(rest, order)
    if rest[end:].strip(" ,"):
        raise NoMoment(text)
    return Moment(day, _at(day, clock, behind["half"]), _zone(behind))


def _behind(text: str) -> "re.Match[str]":
    """A zone that is all of a text, or nothing."""
    found = _ZONE.fullmatch(text)
    if found is None:
        raise NoMoment(text)
    return found


def _day_at(text: str, order: str) -> tuple[dt.date, int]:
    """The day that a text begins with, and where that ends; its era may stand at the end."""
    era = _ERA.search(text)
    end = era.start() if era is not None else len(text)
    weekday = _WEEKDAY.match(text)
    start = 0 if weekday is None else weekday.end()
    for pattern in _DATES:
        found = pattern.match(text, start, end)
        if found is None or text[found.end() : found.end() + 1].isdigit():
            continue
        if era is not None and era["era"] == "bc":
            raise OutOfRange(text)
        return _day(found.groupdict(), order), len(text) if era is not None else found.end()
    raise NoMoment(text)


def _day(parts: dict[str, str | None], order: str) -> dt.date:
    numbers = {name: int(text) for name, text in parts.items() if text and text.isdecimal()}
    if "julian" in numbers:
        return dt.date.fromordinal(numbers["julian"] - _JULIAN_OF_YEAR_1)
    if "c" in numbers:  # three short numbers: which of them is the year?
        names = {"MDY": "mdy", "DMY": "dmy", "YMD": "ymd"}[order]
        numbers |= dict(zip(names, (numbers["a"], numbers["b"], numbers["c"]), strict=True))
        numbers["y"] = _whole_year(numbers["y"])
    elif "a" in numbers:
        if order == "YMD":  # whose year comes first
            raise OutOfRange(f"{numbers}")
        is_day_first = order == "DMY"
        month, day = ("b", "a") if is_day_first else ("a", "b")
        numbers |= {"m": numbers[month], "d": numbers[day]}
    if "yy" in numbers:
        numbers["y"] = _whole_year(numbers["yy"])
    if parts.get("month"):
        numbers["m"] = _MONTHS[str(parts["month"])]
    try:
        if "day_of_year" in numbers:
            return dt.date(numbers["y"], 1, 1) + dt.timedelta(days=numbers["day_of_year"] - 1)
        return dt.date(numbers["y"], numbers["m"], numbers["d"])
    except ValueError:
        raise OutOfRange(f"{numbers}") from None


def _whole_year(short: int) -> int:
    """The year that two digits mean."""
    return short + (1900 if short >= _CENTURY_FROM else 2000)


def _at(day: dt.date, clock: "re.Match[str]", half: str | None) -> dt.datetime:
    """A day at what a clock shows; 24:00 and a leap second are the next day and minute."""
    hour, minute, second = int(clock["hour"]), int(clock["minute"]), int(clock["second"] or 0)
    if half is not None:
        if hour > _HOURS_MAX // 2:
            raise OutOfRange(clock[0])
        hour = hour % 12 + (12 if half == "pm" else 0)
    fraction = clock["fraction"] or ""
    micros = round(float(f"0{fraction}") * _MICROSECONDS) if fraction else 0
    is_over = hour == _HOURS_MAX and (minute or second or micros)
    if hour > _HOURS_MAX or is_over or minute > 59 or second > 60:  # noqa: PLR2004 - of a clock
        raise OutOfRange(clock[0])
    since = dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)
    return dt.datetime.combine(day, dt.time()) + since


def _zone(behind: "re.Match[str]") -> dt.tzinfo | None:
    """The zone of a text; None if it names none."""
    name = behind["name"]
    if name is not None and name not in _ABBREVIATIONS and name not in _ZONES:
        raise NoMoment(name)
    if behind["offset"]:
        hours = int(behind["hours"])
        is_odd = name is not None and (behind["gap"] or behind["minutes"] not in (None, "00"))
        if is_odd or (hours and name is not None and behind["minutes"] is not None):
            raise NoMoment(behind[0])
        if hours > _ZONE_HOURS_MAX:
            raise OutOfRange(behind["offset"])
        east = dt.timedelta(
            hours=hours, minutes=int(behind["minutes"] or 0), seconds=int(behind["seconds"] or 0)
        )
        is_west = (behind["sign"] == "-") != (name is not None)  # after a name, as POSIX has it
        return dt.timezone(-east if is_west else east)
    if name is None:
        return None
    if name in _ZONES:
        return ZoneInfo(_ZONES[name])
    return dt.timezone(dt.timedelta(hours=_ABBREVIATIONS[name]))


MICROSECONDS: Final = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
MICROSECONDS_A_DAY: Final = 86_400 * 10**6
DAYS_A_MONTH: Final = 30
MONTHS_A_YEAR: Final = 12
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_TOKEN_LENGTH: Final = 10  # of a unit's name; PostgreSQL looks at no more
_PLACES_MAX: Final = 6
_BASIC_DATE, _BASIC_TIME = 8, 6  # digits of P00010203 and T040506
_SECONDS_AND_PARTS: Final = frozenset({"second", "millisecond", "microsecond"})
_OF_TIME: Final = frozenset({"hour", "minute"}) | _SECONDS_AND_PARTS

_NAMES: Final = {
    "century": "c cent centuries century",
    "day": "d day days",
    "decade": "dec decade decades decs",
    "hour": "h hour hours hr hrs",
    "microsecond": "microsecon us usec usecond useconds usecs",
    "millennium": "mil millennia millennium mils",
    "millisecond": "millisecon ms msec mseconds msecs msecond",
    "minute": "m min mins minute minutes",
    "month": "mon mons month months",
    "second": "s sec second seconds secs",
    "week": "w week weeks",
    "year": "y year years yr yrs",
    "ago": "ago",
}
_UNITS: Final = {name[:10]: unit for unit, names in _NAMES.items() for name in names.split()}
_YEARS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
# Words and signs. Whatever is between them, such as @ and commas, separates them.
_WORD: Final = re.compile(
    r"""(?P<time>[0-9]+:[0-9:.]*)
      | (?P<number>[0-9]+(?:(?P<sign>[-/.])[0-9]+(?:(?P=sign)[0-9]*)*)?\.?|\.[0-9]*)
      | (?P<signed>[+-]\s*[0-9.][0-9:.-]*)
      | (?P<word>[A-Za-z]+)
      | (?P<other>\s+|[^\w\s+-])""",
    re.VERBOSE | re.ASCII,
)
_AMOUNT: Final = re.compile(r"(?P<whole>[+-]?[0-9]*)(?P<fraction>\.[0-9]*)?", re.ASCII)
_YEAR_MONTH: Final = re.compile(r"(?P<years>[+-]?[0-9]+)-(?P<months>[0-9]*)", re.ASCII)
_CLOCK_OF_INTERVAL: Final = re.compile(
    r"(?P<first>[0-9]+):(?P<second>[0-9]*)(?::(?P<third>[0-9]*))?(?P<fraction>\.[0-9]*)?", re.ASCII
)
_ISO_NUMBER: Final = re.compile(r"-?(?=[0-9.])(?P<whole>[0-9]*)(?P<fraction>\.[0-9]+)?", re.ASCII)

_FIELDS: Final = ("year", "month", "day", "hour", "minute", "second")


class NoInterval(ValueError):
    """A text that PostgreSQL reads as no interval."""


@dataclass(frozen=True, slots=True)
class IntervalValue:
    """An interval as PostgreSQL keeps it.

    Parameters
    ----------
    months, days, microseconds : int
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def scaled(self, factor: float) -> "IntervalValue":
        """The interval times a number; fractions of months become days, those of days time."""
        months, days = self.months * factor, self.days * factor
        whole_months, whole_days = int(months), int(days)
        day_part = _six_places((months - whole_months) * DAYS_A_MONTH)
        more_days = int(day_part)
        seconds = _six_places((days - whole_days + day_part - more_days) * 86_400)
        if abs(seconds) >= 86_400:  # noqa: PLR2004 - of a day
            more_days += int(seconds / 86_400)
            seconds -= int(seconds / 86_400) * 86_400
        microseconds = round(self.microseconds * factor + seconds * 10**6)
        return _checked([whole_months, whole_days + more_days, microseconds])


def read_interval(text: str, fields: str = "", places: int | None = None) -> IntervalValue:
    """What a text means as an interval.

    Parameters
    ----------
    text : str
    fields : str
        Such as ``YEAR TO MONTH``, behind a literal; empty if there are none.
    places : int, optional
        Digits that seconds are rounded to.

    Raises
    ------
    NoInterval
        If PostgreSQL refuses it.

    >>> read_interval("1 day 12:00:00"), read_interval("3 months ago")
    (IntervalValue(months=0, days=1, microseconds=43200000000), IntervalValue(months=-3, days=0, microseconds=0))
    """  # noqa: E501 - a value in one line
    kept = _kept_fields(fields)
    try:
        found = _read_words(text, kept)
    except NoInterval:
        if not text.startswith("P"):
            raise
        found = _read_iso(text)
    return _rounded(_cut(found, kept), places)


def _kept_fields(fields: str) -> tuple[str, ...]:
    """The fields that a literal is declared with, from the first to the last."""
    if not fields:
        return ()
    first, _, last = fields.lower().partition(" to ")
    if first not in _FIELDS or (last and last not in _FIELDS):
        raise NoInterval(fields)
    start, end = _FIELDS.index(first), _FIELDS.index(last or first)
    is_month = end <= 1
    if end < start or (start <= 1) != is_month or (last and end == start):
        raise NoInterval(fields)
    return _FIELDS[start : end + 1]


def _read_words(text: str, kept: tuple[str, ...]) -> list[int]:
    """The form with units and clocks, read from its end as PostgreSQL does."""
    parts, seen = [0, 0, 0], set[str]()
    unit, is_ago = "", False
    for kind, word in reversed(_words(text)):
        new: frozenset[str] = frozenset()
        clock = None
        if kind == "time":
            clock = _clock(word, kept)
        elif kind == "signed" and ":" in word:
            clock = _clock(word[1:], kept)
            clock = -clock if word[0] == "-" else clock
        if clock is not None:
            parts[2] += clock
            new, unit = _OF_TIME, "day"
        elif kind == "word":
            unit = _UNITS.get(word.lower()[:_TOKEN_LENGTH], "")
            if not unit:
                raise NoInterval(text)
            is_ago = is_ago or unit == "ago"
        else:
            unit = unit or (kept[-1] if kept else "second")
            whole, fraction, unit = _amount(word, unit)
            new = _add(parts, whole, fraction, unit)
            unit = "day" if unit == "hour" else unit
        if new & seen:
            raise NoInterval(text)
        seen |= new
    if not seen:
        raise NoInterval(text)
    signed = [-part for part in parts] if is_ago else parts
    _checked(signed)
    return signed


def _words(text: str) -> list[tuple[str, str]]:
    words, place = [], 0
    while place < len(text):
        match = _WORD.match(text, place)
        if match is None:
            raise NoInterval(text)
        place = match.end()
        kind = str(match.lastgroup if match.lastgroup != "sign" else "number")
        after = text[place : place + 1]
        is_date = kind == "number" and (
            (after in ("-", "/") and match["sign"] is None)
            or (match[0].endswith(".") and len(match[0]) > 1 and after.isalpha())
        )
        if is_date or (kind == "word" and after and after in "-/.+0123456789"):
            raise NoInterval(text)
        if kind != "other":
            words.append((kind, re.sub(r"\s+", "", match[0])))
    return words


def _clock(word: str, kept: tuple[str, ...]) -> int:
    """The microseconds of ``4:05:06.7``."""
    match = _CLOCK_OF_INTERVAL.fullmatch(word)
    if match is None:
        raise NoInterval(word)
    first, second, third = (int(match[name] or 0) for name in ("first", "second", "third"))
    hours, minutes, seconds = first, second, third
    is_short = match["third"] is None
    if is_short and (match["fraction"] is not None or kept == ("minute", "second")):
        hours, minutes, seconds = 0, first, second
    if minutes > 59 or seconds > 60:  # noqa: PLR2004 - of a clock, with a leap second
        raise NoInterval(word)
    fraction = round(_fraction(match["fraction"]) * 10**6)
    return (hours * 3600 + minutes * 60 + seconds) * 10**6 + fraction


def _amount(word: str, unit: str) -> tuple[int, float, str]:
    """A number of units: its whole part, its fraction, and the unit, months for ``1-2``."""
    pair = _YEAR_MONTH.fullmatch(word)
    if pair is not None:
        months = int(pair["months"] or 0)
        if months >= MONTHS_A_YEAR:
            raise NoInterval(word)
        sign = -1 if word.startswith("-") else 1
        return int(pair["years"]) * MONTHS_A_YEAR + sign * months, 0.0, "month"
    match = _AMOUNT.fullmatch(word)
    if match is None:
        raise NoInterval(word)
    fraction = _fraction(match["fraction"])
    whole = match["whole"].lstrip("+") or "0"
    return int("0" if whole == "-" else whole), -fraction if word[0] == "-" else fraction, unit


def _fraction(digits: str | None) -> float:
    return float(f"0{digits}0") if digits else 0.0


def _add(parts: list[int], whole: int, fraction: float, unit: str) -> frozenset[str]:
    """Add a number of units, and say which fields have a value by that."""
    if abs(whole) > _INT64_MAX:
        raise NoInterval(str(whole))
    if unit in ("microsecond", "millisecond") or unit in MICROSECONDS:
        scale = {"microsecond": 1, "millisecond": 1000}.get(unit) or MICROSECONDS[unit]
        parts[2] += whole * scale + _whole(fraction * scale)
        return _SECONDS_AND_PARTS if unit == "second" and fraction else frozenset({unit})
    if unit in ("day", "week"):
        days = 1 if unit == "day" else 7
        parts[1] += whole * days
        _add_days(parts, fraction * days)
    elif unit == "month":
        parts[0] += whole
        _add_days(parts, fraction * DAYS_A_MONTH)
    elif unit in _YEARS:
        months = _YEARS[unit] * MONTHS_A_YEAR
        parts[0] += whole * months + round(fraction * months)
    else:
        raise NoInterval(unit)
    return frozenset({unit})


def _add_days(parts: list[int], days: float) -> None:
    whole = int(days)
    parts[1] += whole
    parts[2] += _whole((days - whole) * MICROSECONDS_A_DAY)


def _whole(value: float) -> int:
    """A whole number; exactly half of one is cut off."""
    whole = int(value)
    rest = value - whole
    return whole + (rest > 0.5) - (rest < -0.5)  # noqa: PLR2004 - a half


def _read_iso(text: str) -> list[int]:
    """ISO 8601: ``P1Y2M3DT4H5M6S``, ``P0001-02-03T04:05:06`` and ``P00010203T040506``."""
    parts, place = [0, 0, 0], 1
    is_date, has_field = True, False
    if len(text) < 2:  # noqa: PLR2004 - the P, and something
        raise NoInterval(text)
    while place < len(text):
        if text[place] == "T":
            is_date, has_field, place = False, False, place + 1
            continue
        whole, fraction, end = _iso_number(text, place)
        unit = text[end : end + 1]
        by_letter = _ISO_DATE if is_date else _ISO_TIME
        if unit in by_letter:
            _add(parts, whole, fraction, by_letter[unit])
            has_field, place = True, end + 1
            continue
        between = "-" if is_date else ":"
        if has_field or unit not in ("", between, "T" if is_date else ""):
            raise NoInterval(text)
        n_digits = len(re.match(r"-?([0-9]*)", text[place:])[1])  # type: ignore[index]
        if unit != between and n_digits == (_BASIC_DATE if is_date else _BASIC_TIME):
            _add_basic(parts, whole, fraction, is_date=is_date)
            place = end
            if not unit:
                break
            continue
        place = _extended(parts, text, place, is_date=is_date)
    _checked(parts)
    return parts


_ISO_DATE: Final = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME: Final = {"H": "hour", "M": "minute", "S": "second"}


def _add_basic(parts: list[int], whole: int, fraction: float, *, is_date: bool) -> None:
    units = ("year", "month", "day") if is_date else ("hour", "minute", "second")
    high, rest = int(whole / 10_000), math.fmod(whole, 10_000)
    _add(parts, high, 0.0, units[0])
    _add(parts, int(rest / 100), 0.0, units[1])
    _add(parts, int(math.fmod(rest, 100)), fraction, units[2])


def _extended(parts: list[int], text: str, place: int, *, is_date: bool) -> int:
    """Years, months and days between dashes, or a clock; where it ends."""
    between = "-" if is_date else ":"
    for unit in ("year", "month", "day") if is_date else ("hour", "minute", "second"):
        whole, fraction, place = _iso_number(text, place)
        _add(parts, whole, fraction, unit)
        if place == len(text) or (is_date and text[place] == "T"):
            return place
        if text[place] != between or unit in ("day", "second"):
            raise NoInterval(text)
        place += 1
    raise NoInterval(text)


def _iso_number(text: str, place: int) -> tuple[int, float, int]:
    match = _ISO_NUMBER.match(text, place)
    if match is None or not (match["whole"] or match["fraction"]):
        raise NoInterval(text)
    sign = -1 if match[0].startswith("-") else 1
    return sign * int(match["whole"] or 0), sign * _fraction(match["fraction"]), match.end()


def _checked(parts: list[int]) -> IntervalValue:
    if max(abs(parts[0]), abs(parts[1])) > _INT32_MAX or abs(parts[2]) > _INT64_MAX:
        raise NoInterval("out of range")
    return IntervalValue(*parts)


def _cut(parts: list[int], kept: tuple[str, ...]) -> IntervalValue:
    """The interval without what is below the last declared field."""
    months, days, microseconds = parts
    last = kept[-1] if kept else "second"
    if last == "year":
        months = int(months / MONTHS_A_YEAR) * MONTHS_A_YEAR
    if last in ("year", "month"):
        days = 0
    if last in ("year", "month", "day"):
        microseconds = 0
    elif last in ("hour", "minute"):
        unit = MICROSECONDS[last]
        microseconds = (abs(microseconds) // unit * unit) * (1 if microseconds >= 0 else -1)
    return IntervalValue(months, days, microseconds)


def _rounded(value: IntervalValue, places: int | None) -> IntervalValue:
    if places is None or places >= _PLACES_MAX:
        return value
    if places < 0:
        raise NoInterval(str(places))
    unit = 10 ** (_PLACES_MAX - places)
    size = (abs(value.microseconds) + unit // 2) // unit * unit
    return IntervalValue(value.months, value.days, size if value.microseconds >= 0 else -size)


def _six_places(value: float) -> float:
    """Rounded to millionths, ties to even, as PostgreSQL rounds parts of days."""
    return round(value * 10**6) / 10**6
