"""A session's settings: which values are taken, what is told of them, and their transaction.

The settings that clients set by themselves do not change an answer. Those that change how values
are written are obeyed, or refused with a value that is not: dates are ISO, texts UTF-8. Some are
reported back; SHOW says all, and which targets hold on this wire by default.

Of the transaction that settings may be in, there is nothing else to undo: what was charged stays
charged. A transaction that failed takes no statement until it ends, as PostgreSQL has it, and what
was set in it is set back.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa

from cube.refusals import InvalidTarget
from planner.sql import (
    IGNORED,
    NAMESPACE,
    NOTICES,
    SETTING_NAMES,
    Savepoint,
    SavepointWord,
    ShowAll,
    ShowClientSetting,
    ShowSetting,
    TransactionWord,
    default_of,
    every_default,
    switched,
)
from planner.workload import RequestedTarget
from proxy.wire.postgres.backend import Standing
from proxy.wire.postgres.bound_values import Reading
from proxy.wire.postgres.sqlstates import (
    ACTIVE_TRANSACTION,
    FAILED_TRANSACTION,
    NO_TRANSACTION,
    StateError,
)
from proxy.wire.postgres.values import ISO_8601, POSTGRES, VERBOSE, TextStyle
from proxy.wire.sessions import setting_text

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
_ALIASES: Final = {
    "time zone": "timezone",
    "names": "client_encoding",
    "session authorization": "session_authorization",
    "session characteristics": "transaction_isolation",
    "transaction": "transaction_isolation",
}
USER: Final = "session_authorization"
_UTF8: Final = frozenset({"utf8", "utf-8", "unicode", "sql_ascii"})
_INTERVAL: Final = re.compile(r"INTERVAL ([+-]?\d{1,2}(?::?\d{2})?)(?: HOUR TO MINUTE)?", re.ASCII)
_HOURS: Final = re.compile(r"[+-]?\d{1,2}(\.\d{1,4})?", re.ASCII)
# As POSIX writes a zone: hours are west of Greenwich, whatever the sign may look like.
_POSIX: Final = re.compile(r"(<[^<>]{1,20}>|[A-Za-z]{3,20})?([+-]?\d{1,2}(?::\d{2})?)", re.ASCII)
_HOURS_MAX: Final = 24
_MILLISECONDS: Final = {"": 1, "us": 1e-3, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
_DURATION: Final = re.compile(r"(\d{1,12})\s*([a-z]*)", re.ASCII)
_ZONES: Final = {name.casefold(): name for name in available_timezones()}


def default(name: str) -> str:
    """The value of a setting that was never set."""
    return default_of(name)


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
        raise _invalid("statement_timeout", f"is not a duration: {value[:64]!a}", "Write 5s.")
    return int(match[1]) * _MILLISECONDS[match[2]]


def _encoding(value: str) -> str:
    if value.strip(" '").casefold() not in _UTF8:  # asyncpg sends it with quotes
        raise _invalid(
            "client_encoding", f"cannot be {value[:64]!a}", "This server sends and reads UTF8 only."
        )
    return "UTF8"


def _date_style(value: str) -> str:
    words = {word.strip().upper() for word in value.split(",")}
    if not words <= {"ISO", "MDY", "DMY", "YMD", "US", "EUROPEAN"}:
        raise _invalid(
            "DateStyle", f"cannot be {value[:64]!a}", "This server writes dates as ISO only."
        )
    order = "DMY" if words & {"DMY", "EUROPEAN"} else "YMD" if "YMD" in words else "MDY"
    return f"ISO, {order}"


def _zone(value: str) -> str:
    text = value.strip()
    known = _ZONES.get(text.casefold())
    if known is not None:
        return known
    interval = _INTERVAL.fullmatch(text.replace("'", ""))
    if interval is not None:
        hours, _, minutes = interval[1].partition(":")
        sign = -1 if hours.startswith("-") else 1
        return _written_zone(int(hours) * 60 + sign * int(minutes or 0), value)
    if _HOURS.fullmatch(text) is not None:
        return _written_zone(round(float(text) * 60), value)
    if _POSIX.fullmatch(text) is None or abs(_posix_minutes(text)) >= 60 * _HOURS_MAX:
        raise _no_zone(value)
    return text


def _written_zone(minutes: int, value: str) -> str:
    """A zone so many minutes east of Greenwich, as PostgreSQL writes it."""
    if abs(minutes) >= 60 * _HOURS_MAX:
        raise _no_zone(value)
    east, west = (_clock(minutes), _clock(-minutes)) if minutes else ("+00", "-00")
    return f"<{east}>{west}"


def _clock(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}" + (f":{rest:02}" if rest else "")


def _posix_minutes(text: str) -> int:
    """How many minutes east of Greenwich a zone of POSIX is."""
    match = _POSIX.fullmatch(text)
    hours, _, rest = (match[2] if match else "0").partition(":")
    sign = -1 if hours.startswith("-") else 1
    return -(int(hours) * 60 + sign * int(rest or 0))


def _no_zone(value: str) -> StateError:
    return _invalid("TimeZone", f"cannot be {value[:64]!a}", "Name a zone, such as Europe/Oslo.")


@lru_cache(maxsize=1024)
def style_of(client: tuple[tuple[str, str], ...]) -> TextStyle:
    """How values are written under a session's settings."""
    settings = dict(client)
    return TextStyle(
        zone=zone_of(settings.get("timezone", "UTC")),
        interval=settings.get("intervalstyle", POSTGRES),
        float_digits=int(settings.get("extra_float_digits", "1")),
        escapes_bytes=settings.get("bytea_output") == "escape",
    )


@lru_cache(maxsize=1024)
def reading_of(client: tuple[tuple[str, str], ...]) -> Reading:
    """How texts of values are read under a session's settings."""
    settings = dict(client)
    order = settings.get("datestyle", default_of("datestyle")).rpartition(" ")[2]
    return Reading(zone_of(settings.get("timezone", "UTC")), order)


def zone_of(name: str) -> dt.tzinfo:
    """The zone of a checked value of TimeZone."""
    if name in ("UTC", "Etc/UTC"):
        return dt.UTC
    if _ZONES.get(name.casefold()) == name:
        return ZoneInfo(name)
    return dt.timezone(dt.timedelta(minutes=_posix_minutes(name)))


def _digits(value: str) -> str:
    if not value.strip().lstrip("+-").isdecimal() or not -15 <= int(value) <= 3:  # noqa: PLR2004 - as PostgreSQL has it
        raise _invalid("extra_float_digits", f"cannot be {value[:64]!a}", "It is from -15 to 3.")
    return str(int(value))


def _search_path(value: str) -> str:
    """A path that finds what is found here: tables of `public` by their names alone."""
    names = [name.strip().strip('"').casefold() for name in value.split(",")]
    wanted = [name for name in names if name not in ("", "$user", *_SYSTEM)]
    if wanted and _SCHEMA not in wanted:
        raise _invalid(
            "search_path",
            f"cannot be {value[:64]!a}",
            "Here a name without a schema is in public; write other names with their schema.",
        )
    if _SCHEMA in wanted and PRIVACY in wanted[: wanted.index(_SCHEMA)]:
        raise _invalid(
            "search_path", "cannot have data_privacy before public", "Write data_privacy.budgets."
        )
    return value


def _role(value: str) -> str:
    if value.casefold() not in ("none", "default"):
        raise StateError(
            "42501",
            f"The role cannot be {value[:64]!a}: a connection has the role of its token.",
            hint="Connect with another token; SET ROLE NONE and RESET ROLE are allowed.",
        )
    return "none"


def _one_of(name: str, *taken: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        found = value.strip().casefold()
        if found not in taken:
            raise _invalid(
                name, f"cannot be {value[:64]!a}", f"Here it is one of {', '.join(taken)}."
            )
        return found

    return check


def _only(name: str, taken: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        found = value.strip().casefold()
        if found != taken and (taken not in _FLAGS or _flag(name, found) != taken):
            raise _invalid(name, f"cannot be {value[:64]!a}", f"It is {taken} here.")
        return taken

    return check


def _flag(name: str, value: str) -> str:
    """A Boolean as PostgreSQL reads it: a word, or as much of it as is clear."""
    folded = value.strip().casefold()
    for shown, words in (("on", ("true", "yes", "on", "1")), ("off", ("false", "no", "off", "0"))):
        if folded not in ("", "o") and any(word.startswith(folded) for word in words):
            return shown
    raise _invalid(name, f"is not a Boolean: {value[:64]!a}", "Write on or off.")


def _number(name: str, value: str) -> str:
    if _NUMBER.fullmatch(value.strip()) is None:
        raise _invalid(name, f"is not a number: {value[:64]!a}", "Write it like 64MB, 5s or 0.5.")
    return value.strip()


def _without_effect(name: str) -> Callable[[str], str]:
    """What is checked of a setting that nothing depends on: that it is of its kind."""
    if name in _WORDS:
        return _one_of(name, *_WORDS[name])
    if IGNORED[name] in _FLAGS:
        return lambda value: _flag(name, value)
    if IGNORED[name][:1].isdecimal():
        return lambda value: _number(name, value)
    return lambda value: value


def _locale(name: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.casefold() not in _LOCALES:
            raise _invalid(name, f"cannot be {value[:64]!a}", "This server has only the locale C.")
        return value

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


_LOCALES: Final = ("", "c", "posix", "c.utf-8", "c.utf8", "en_us.utf-8", "en_us.utf8", "en_us")
_FLAGS: Final = ("on", "off")
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}(\.\d{0,18})?\s*([kMGT]?B|us|ms|s|min|h|d)?", re.ASCII)
_SCHEMA: Final = "public"
PRIVACY: Final = "data_privacy"
_SYSTEM: Final = ("pg_catalog", "information_schema", "pg_temp")
_SWITCH: Final = ("on", "off", "true", "false", "yes", "no", "1", "0")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "constraint_exclusion": ("partition", *_SWITCH),
    "default_toast_compression": ("pglz", "lz4"),
    "force_parallel_mode": ("regress", *_SWITCH),
    "plan_cache_mode": ("auto", "force_generic_plan", "force_custom_plan"),
    "synchronous_commit": ("local", "remote_write", "remote_apply", *_SWITCH),
    "transaction_isolation": (
        *("serializable", "repeatable read", "read committed", "read uncommitted"),
    ),
    "xmlbinary": ("base64", "hex"),
    "xmloption": ("content", "document"),
}
_LEVELS: Final = (
    *("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice"),
    *("warning", "error", "fatal", "panic"),
)
_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    **{name: _without_effect(name) for name in IGNORED if name != "transaction_isolation"},
    "array_nulls": _only("array_nulls", "on"),
    "backslash_quote": _one_of("backslash_quote", "safe_encoding", *_SWITCH),
    "bytea_output": _one_of("bytea_output", "hex", "escape"),
    "client_encoding": _encoding,
    "client_min_messages": _one_of("client_min_messages", *_LEVELS),
    "datestyle": _date_style,
    "extra_float_digits": _digits,
    "idle_in_transaction_session_timeout": lambda value: _number(
        "idle_in_transaction_session_timeout", value
    ),
    "intervalstyle": _one_of("IntervalStyle", POSTGRES, VERBOSE, ISO_8601),
    "lc_monetary": _locale("lc_monetary"),
    "lc_numeric": _locale("lc_numeric"),
    "lc_time": _locale("lc_time"),
    "lock_timeout": lambda value: _number("lock_timeout", value),
    "role": _role,
    "search_path": _search_path,
    "session_authorization": _role,
    "session_replication_role": _only("session_replication_role", "origin"),
    "standard_conforming_strings": _only("standard_conforming_strings", "on"),
    "statement_timeout": _duration,
    "transform_null_equals": _only("transform_null_equals", "off"),
    NOTICES: _switch,
    "timezone": _zone,
}


N_SAVEPOINTS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session has set.

    Parameters
    ----------
    target : RequestedTarget
        Our own settings.
    client : tuple of (str, str)
        Those that clients set by themselves and that are not at their default, in order of name.
    """

    target: RequestedTarget = field(default_factory=RequestedTarget)
    client: tuple[tuple[str, str], ...] = ()

    def with_client(self, name: str, value: str | None) -> "SessionSettings":
        """With one of the client's settings changed; None for its default."""
        others = dict(self.client)
        others.pop(name, None)
        if value is not None:
            others[name] = value
        return replace(self, client=tuple(sorted(others.items())))


Change = Callable[[SessionSettings], SessionSettings]


class Transaction:
    """The settings of one session, inside and outside of its transactions.

    Parameters
    ----------
    settings : SessionSettings
        How the session begins.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._first = settings
        self._lasting = settings  # without what is local to a transaction
        self._before = settings  # what a rollback returns to
        self._savepoints: list[tuple[str, SessionSettings, SessionSettings]] = []
        self.settings = settings
        self.standing = Standing.IDLE

    @property
    def is_open(self) -> bool:
        """Whether a transaction was begun and has not ended."""
        return self.standing is not Standing.IDLE

    def check_usable(self) -> None:
        """Refuse a statement in a transaction that failed."""
        if self.standing is Standing.FAILED:
            raise StateError(
                FAILED_TRANSACTION,
                "The transaction failed; statements are ignored until it ends.",
                hint="Send ROLLBACK.",
            )

    def fail(self) -> None:
        """A statement failed."""
        if self.is_open:
            self.standing = Standing.FAILED

    def change(self, change: Change, *, is_local: bool = False) -> None:
        """Change settings; a local change ends with the transaction."""
        if is_local and not self.is_open:
            return
        self.settings = change(self.settings)
        if not is_local:
            self._lasting = change(self._lasting)

    def reset(self) -> None:
        """Put every setting back to its value when the session began."""
        self.change(lambda _: self._first)

    def say(self, word: TransactionWord) -> tuple[str, tuple[str, str] | None]:
        """Begin or end; the tag of the command, and the code and text of a warning."""
        if word is TransactionWord.BEGIN:
            if self.is_open:
                return "BEGIN", (ACTIVE_TRANSACTION, "There is a transaction already.")
            self.standing, self._before = Standing.OPEN, self.settings
            return "BEGIN", None
        warning = None if self.is_open else (NO_TRANSACTION, "There is no transaction.")
        is_kept = word is TransactionWord.COMMIT and self.standing is not Standing.FAILED
        self._end(is_kept=is_kept)
        return ("COMMIT" if is_kept else "ROLLBACK"), warning

    def savepoint(self, said: Savepoint) -> str:
        """Set, release or return to a savepoint; the tag of the command."""
        if not self.is_open:
            raise StateError(
                NO_TRANSACTION, f"{said.verb} is for transactions.", hint="Send BEGIN first."
            )
        if said.word is not SavepointWord.ROLLBACK_TO:
            self.check_usable()
        if said.word is SavepointWord.SET:
            if len(self._savepoints) >= N_SAVEPOINTS_MAX:
                raise StateError("54000", f"There are {N_SAVEPOINTS_MAX} savepoints already.")
            self._savepoints.append((said.name, self.settings, self._lasting))
            return "SAVEPOINT"
        place = self._place(said.name)
        if said.word is SavepointWord.RELEASE:
            del self._savepoints[place:]
            return "RELEASE"
        _, self.settings, self._lasting = self._savepoints[place]
        del self._savepoints[place + 1 :]
        self.standing = Standing.OPEN
        return "ROLLBACK"

    def _place(self, name: str) -> int:
        places = [at for at, (known, *_) in enumerate(self._savepoints) if known == name]
        if not places:
            raise StateError("3B001", f"There is no savepoint {name[:64]!a}.")
        return places[-1]

    def _end(self, *, is_kept: bool) -> None:
        if self.is_open:
            self.settings = self._lasting = self._lasting if is_kept else self._before
        self._savepoints.clear()
        self.standing = Standing.IDLE


Show: TypeAlias = ShowSetting | ShowClientSetting | ShowAll

DEFAULTS: Final = RequestedTarget(integer_counts=True)  # as PostgreSQL counts


def shown(statement: Show, settings: SessionSettings, user: str) -> pa.Table:
    """The answer to a SHOW; NULL where a table's own target holds."""
    client, target = dict(settings.client), settings.target.over(DEFAULTS)
    match statement:
        case ShowSetting(name):
            return _texts({NAMESPACE + name: [setting_text(target, name)]})
        case ShowClientSetting(name):
            name = canonical(name)
            value = user if name == USER else client.get(name, default(name))
            return _texts({REPORTED.get(name, name): [value]})
        case ShowAll():
            own = {NAMESPACE + name: setting_text(target, name) for name in SETTING_NAMES}
            every = {**own, **every_default(), **client}
            nothing: list[str | None] = [""] * len(every)
            return _texts({"name": [*every], "setting": [*every.values()], "description": nothing})


def _texts(columns: Mapping[str, Sequence[str | None]]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
