"""Settings that clients set by themselves: which values are taken, and which are reported back.

None of them changes an answer. Those that would change how values are written are taken only as
what is written here: ISO dates, UTF-8 text.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final
from zoneinfo import available_timezones

from cube.refusals import InvalidTarget
from planner.sql.options import switched
from planner.sql.settings import NOTICES, READ_ONLY, SHOWN
from proxy.wire.postgres.sqlstates import StateError

N_CHARACTERS_MAX: Final = 1000

# Clients are told of these when they log in, and whenever they change.
REPORTED: Final[Mapping[str, str]] = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "integer_datetimes": "integer_datetimes",
    "search_path": "search_path",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}
_ALIASES: Final = {"time zone": "timezone", "names": "client_encoding"}
_UTF8: Final = frozenset({"utf8", "utf-8", "unicode", "sql_ascii"})
_OFFSET: Final = re.compile(r"(INTERVAL )?[+-]?\d{1,2}(:?\d{2})?( HOUR TO MINUTE)?", re.ASCII)
_MILLISECONDS: Final = {"": 1, "us": 1e-3, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
_DURATION: Final = re.compile(r"(\d{1,12})\s*([a-z]*)", re.ASCII)
_ZONES: Final = {name.casefold(): name for name in available_timezones()}


def default(name: str) -> str:
    """What a setting is where nobody has set it."""
    return SHOWN.get(name) or READ_ONLY.get(name, "")


def canonical(name: str) -> str:
    """One name for a setting that has two."""
    return _ALIASES.get(name, name)


def checked(name: str, value: str) -> str:
    """A value as it is kept and shown.

    Raises
    ------
    StateError
        If it is none that can be taken.
    """
    if len(value) > N_CHARACTERS_MAX:
        raise _invalid(name, f"has more than {N_CHARACTERS_MAX} characters", "Shorten it.")
    check = _CHECKS.get(name)
    return value if check is None else check(value)


def milliseconds(value: str) -> float:
    """A duration as PostgreSQL writes it: ``5000``, ``5s``, ``1min``."""
    match = _DURATION.fullmatch(value.strip().lower())
    if match is None or match[2] not in _MILLISECONDS:
        raise _invalid("statement_timeout", f"is no duration: {value[:64]!a}", "Write 5s.")
    return int(match[1]) * _MILLISECONDS[match[2]]


def _encoding(value: str) -> str:
    if value.strip(" '").casefold() not in _UTF8:  # asyncpg sends it with quotes
        raise _invalid("client_encoding", f"cannot be {value[:64]!a}", "Texts are UTF8 here.")
    return "UTF8"


def _date_style(value: str) -> str:
    words = {word.strip().upper() for word in value.split(",")}
    if not words <= {"ISO", "MDY", "DMY", "YMD", "US", "EUROPEAN"}:
        raise _invalid("DateStyle", f"cannot be {value[:64]!a}", "Dates are written as ISO here.")
    order = "DMY" if words & {"DMY", "EUROPEAN"} else "YMD" if "YMD" in words else "MDY"
    return f"ISO, {order}"


def _zone(value: str) -> str:
    known = _ZONES.get(value.strip().casefold())
    if known is not None:
        return known
    if _OFFSET.fullmatch(value.strip()) is None:
        raise _invalid("TimeZone", f"cannot be {value[:64]!a}", "Name a zone, such as Europe/Oslo.")
    return value.strip()


def _only(name: str, taken: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.strip().casefold() not in (taken, {"on": "true"}.get(taken, taken), "1"):
            raise _invalid(name, f"cannot be {value[:64]!a}", f"It is {taken} here.")
        return taken

    return check


def _switch(value: str) -> str:
    try:
        return "on" if switched(NOTICES, value.strip()) else "off"
    except InvalidTarget as refusal:
        raise StateError("22023", refusal.message, hint=refusal.hint) from None


def _duration(value: str) -> str:
    milliseconds(value)
    return value


def _invalid(name: str, why: str, hint: str) -> StateError:
    return StateError("22023", f"The value of {name} {why}.", hint=hint)


_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    "bytea_output": _only("bytea_output", "hex"),
    "client_encoding": _encoding,
    "datestyle": _date_style,
    "intervalstyle": _only("IntervalStyle", "postgres"),
    "standard_conforming_strings": _only("standard_conforming_strings", "on"),
    "statement_timeout": _duration,
    NOTICES: _switch,
    "timezone": _zone,
}
