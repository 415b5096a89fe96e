"""The texts of days and moments as PostgreSQL reads them.

    2024-06-01     20240601     6/1/2024     1 Jun 2024     2024-06-01T10:20:30.5Z
    2024-06-01 10:20 PM     Sat Jun 01 10:20:30 2024     2024-06-01 10:20:30 Europe/Oslo

What a client binds to a date or a timestamp is read here. A text that PostgreSQL refuses is
refused; so is what lies outside of the years 1 to 9999, which no column holds.
"""

import datetime as dt
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
