"""Sessions: what accuracy a client asks for when its statements do not say.

    OPTIONS(..) of the statement   go before
    the call's own message         go before    (tacit.v1 has a target in each request)
    headers of the call            go before    tacit-half-width, tacit-relative, tacit-epsilon ..
    settings of the session        go before    SET tacit.half_width = 50
    the table's default

A session is one analyst's use of one gRPC connection, known by the address at its other end,
for Flight SQL and for `tacit.v1` alike. It ends with the connection: a client that reconnects, as
some do after half an hour of silence, begins with no settings. A header, or OPTIONS, is there
whenever it is sent, which is where a cap on epsilon that must hold belongs. The least recently used
sessions are forgotten beyond `N_SESSIONS_MAX`, and any after `IDLE_SECONDS_MAX` without a call, so
that a later client with the same address does not find them.

Nothing here is durable, and nothing decides what a statement costs.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import grpc
import pyarrow as pa

from cube.refusals import InvalidTarget, UnsupportedSql
from cube.target import AccuracyTarget, PosteriorMethod
from planner.sql import (
    AS_OF,
    FILE,
    NAMESPACE,
    ONE_STATEMENT,
    SETTING_NAMES,
    SWITCHES,
    ClientSetting,
    DiscardAll,
    ResetAll,
    ResetSetting,
    Savepoint,
    SessionStatement,
    SetSetting,
    SettingValue,
    ShowAll,
    ShowClientSetting,
    ShowSetting,
    TextLimits,
    TransactionWord,
    Unlisten,
    check_alone,
    check_decide,
    check_relative,
    every_default,
    read_text,
    setting_value,
    suggestion,
)
from planner.workload import Fallback, RequestedTarget
from proxy.identity import caller_of

N_SESSIONS_MAX = 10_000
IDLE_SECONDS_MAX = 3600.0

HEADER_PREFIX: Final = "tacit-"
HEADERS: Final[Mapping[str, str]] = {
    HEADER_PREFIX + name.replace("_", "-"): name for name in SETTING_NAMES
}
Key: TypeAlias = tuple[str, str]  # whose session it is, and the address at its other end
SET_SCHEMA: Final = pa.schema([pa.field("setting", pa.string(), nullable=False)])

NOBODY: Final = (None, "none", "NONE", "None")  # else, whom a session could become
_NOTHING: Final = RequestedTarget()
_IN_RANGE: Final = RequestedTarget(half_width=1.0, confidence=0.5)


@dataclass(frozen=True, slots=True, eq=False)
class StatementInSession:
    """A client's text without the statements about its session that it begins with.

    Parameters
    ----------
    sql : str
        What is left; nothing if the text was about the session alone.
    target : RequestedTarget
        What the call's headers and its session ask for.
    reply : pyarrow.Table, optional
        The answer of a text about the session alone: no rows, or one that SHOW asked for.
    """

    sql: str
    target: RequestedTarget
    reply: pa.Table | None


class Sessions:
    """The settings of every connection to one server. Thread-safe.

    Parameters
    ----------
    clock : callable, optional
        Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: OrderedDict[Key, tuple[RequestedTarget, float]] = OrderedDict()

    def run(self, sql: str, context: grpc.ServicerContext) -> StatementInSession:
        """Take the settings off a text, and keep them for its session.

        None is kept if any of them, or a header of the call, is refused.
        """
        commands, statement = about_session(sql)
        headers = header_target(context.invocation_metadata())
        return _asked(commands, statement, headers.over(self.change(commands, context)))

    def preview(
        self, sql: str, context: grpc.ServicerContext, limits: TextLimits = ONE_STATEMENT
    ) -> StatementInSession:
        """What `run` would say, also of a file; nothing is kept."""
        commands, statement = about_session(sql, limits)
        headers = header_target(context.invocation_metadata())
        settings = applied(self.settings(context), commands)
        return _asked(commands, statement, headers.over(settings))

    def change(
        self, commands: Iterable[SessionStatement], context: grpc.ServicerContext
    ) -> RequestedTarget:
        """Carry out commands, all or none of them; the session's settings then."""
        key = _key(context)
        with self._lock:
            before = self._settings(key)
            after = applied(before, commands)
            if after != before:
                self._keep(key, after)
            return after

    def settings(self, context: grpc.ServicerContext) -> RequestedTarget:
        """What a call's session has set."""
        with self._lock:
            return self._settings(_key(context))

    def close(self, context: grpc.ServicerContext) -> None:
        """Forget what a call's session has set."""
        with self._lock:
            self._held.pop(_key(context), None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def _settings(self, key: Key) -> RequestedTarget:
        """The settings of a session, which becomes the most recently used."""
        now = self._clock()
        settings, used = self._held.pop(key, (_NOTHING, now))
        if settings == _NOTHING or now - used > IDLE_SECONDS_MAX:
            return _NOTHING
        self._held[key] = (settings, now)
        return settings

    def _keep(self, key: Key, settings: RequestedTarget) -> None:
        self._held.pop(key, None)
        if settings != _NOTHING:
            self._held[key] = (settings, self._clock())
        while len(self._held) > N_SESSIONS_MAX:
            self._held.popitem(last=False)


def _key(context: grpc.ServicerContext) -> Key:
    return caller_of(context).payer.analyst, context.peer()


def about_session(
    sql: str, limits: TextLimits = ONE_STATEMENT
) -> tuple[tuple[SessionStatement, ...], str]:
    """The statements about its session that a text begins with, and the rest of it.

    Words of a transaction behind the rest are left out.

    >>> about_session("SET tacit.half_width = 50; SELECT 1")
    ((SetSetting(name='half_width', value=Fraction(50, 1), is_local=False),), 'SELECT 1')

    Raises
    ------
    Refused
        If the text cannot be read, or has a SHOW beside others. If the rest is several statements,
        unless the text is a file of them.
    """
    found = read_text(sql, limits)
    commands: list[SessionStatement] = []
    for _, statement in found:
        if not isinstance(statement, SessionStatement):
            break
        commands.append(statement)
    rest, end = found[len(commands) :], len(sql)
    while len(rest) > 1 and isinstance(rest[-1].statement, TransactionWord):
        end, rest = rest[-1].start, rest[:-1]  # COMMIT after a statement changes nothing
    if limits is not FILE:
        check_alone(rest)
    shows = any(isinstance(one, ShowSetting | ShowClientSetting | ShowAll) for one in commands)
    if len(found) > 1 and shows:
        raise UnsupportedSql("SHOW is answered alone.", hint="Send it as a statement of its own.")
    if not commands:
        return (), sql[:end]
    return tuple(commands), sql[rest[0].start : end] if rest else ""


def applied(settings: RequestedTarget, commands: Iterable[SessionStatement]) -> RequestedTarget:
    """The settings once the commands were carried out in order.

    Raises
    ------
    InvalidTarget
        If a value is out of range, whatever the rest of a target will turn out to be.
    """
    for command in commands:
        match command:
            case (
                SetSetting(is_local=True)
                | ResetSetting(is_local=True)
                | ClientSetting(is_local=True)
            ):
                raise UnsupportedSql(
                    "SET LOCAL lasts for a transaction, and there are none here.",
                    hint="SET alone lasts for the connection; OPTIONS(..) in a SELECT for one "
                    "statement.",
                )
            case ClientSetting("role" | "session authorization", value) if value not in NOBODY:
                raise UnsupportedSql(
                    "A call has the role of its token, and cannot change it.",
                    hint="Send another token; only SET ROLE NONE is allowed.",
                )
            case ResetAll() | DiscardAll():
                settings = _NOTHING
            case SetSetting(name, value):
                settings = _with(settings, name, value)
            case ResetSetting(name):
                settings = _with(settings, name, None)
            case ShowSetting() | ShowClientSetting() | ShowAll():
                pass
            case ClientSetting() | TransactionWord() | Savepoint() | Unlisten():
                pass
    check_in_range(settings)
    return settings


def header_target(metadata: Iterable[tuple[str, str | bytes]] | None) -> RequestedTarget:
    """The target that a call's headers name.

    Raises
    ------
    InvalidTarget
        If a header that begins with ``tacit-`` is not one of `HEADERS`, is there twice with
        different values, or is no number in range. The message names it.
    """
    found: dict[str, str] = {}
    for key, value in metadata or ():
        if not key.startswith(HEADER_PREFIX):
            continue
        if key not in HEADERS:
            raise InvalidTarget(
                f"There is no header {key[:64]}.",
                hint=suggestion(key, HEADERS) or f"Headers are {', '.join(HEADERS)}.",
            )
        text = value if isinstance(value, str) else value.decode("utf-8", errors="replace")
        if found.setdefault(key, text) != text:
            raise InvalidTarget(f"The header {key} is given twice, with different values.")
    if {f"{HEADER_PREFIX}half-width", f"{HEADER_PREFIX}relative"} <= found.keys():
        raise InvalidTarget(
            "The headers name both tacit-half-width and tacit-relative.", hint="Send one of them."
        )
    target = _NOTHING
    for key, name in HEADERS.items():
        if key not in found:
            continue
        setting = setting_value(name, f"The header {key}", found[key])
        target = _with(target, name, setting)
        try:
            check_in_range(target)
        except InvalidTarget as refusal:
            raise InvalidTarget(f"The header {key}: {refusal.message}", hint=refusal.hint) from None
    return target


def check_in_range(target: RequestedTarget) -> None:
    """Raise InvalidTarget if a part of a target is out of range, whatever the rest will be."""
    check_relative(target.relative, target.at_least)
    check_decide(target.decide)
    filled = target.over(_IN_RANGE)
    AccuracyTarget(
        half_width=1.0 if filled.half_width is None else filled.half_width,
        confidence=0.5 if filled.confidence is None else filled.confidence,
        epsilon_cap=filled.epsilon_cap,
    )


# What else a setting changes, by its name and whether it is taken away.
_LEFT_OUT: Final[Mapping[tuple[str, bool], Mapping[str, float | None]]] = {
    ("half_width", False): {"relative": None, "at_least": None},
    ("relative", False): {"half_width": None},
    ("relative", True): {"at_least": None},
}
# Settings without a number.
_WORDS: Final = {
    "fallback": Fallback,
    "posterior": PosteriorMethod,
    AS_OF: str,
    **dict.fromkeys(SWITCHES, bool),
}


def _with(target: RequestedTarget, name: str, value: SettingValue | None) -> RequestedTarget:
    """The target with one setting changed; of half_width and relative, the later one holds."""
    if name in _WORDS:
        named: dict[str, Any] = {name: value if isinstance(value, _WORDS[name]) else None}
        return replace(target, **named)
    exact = value if isinstance(value, Fraction) else None
    if name == "epsilon":
        return replace(target, epsilon_cap=exact)
    number = None if exact is None else float(exact)
    return replace(target, **{name: number, **_LEFT_OUT.get((name, number is None), {})})  # type: ignore[arg-type]  # each is a number


def _asked(
    commands: tuple[SessionStatement, ...], statement: str, target: RequestedTarget
) -> StatementInSession:
    reply = None if statement or not commands else _reply(commands[-1], target)
    return StatementInSession(statement, target, reply)


def _reply(last: SessionStatement, target: RequestedTarget) -> pa.Table:
    """No rows, but for SHOW what it shows, NULL where the table's default holds."""
    match last:
        case ShowSetting(name):
            text = setting_text(target, name)
            return pa.table({NAMESPACE + name: pa.array([text], pa.string())})
        case ShowClientSetting(name):
            return pa.table({name.replace(" ", "_"): pa.array([last.value], pa.string())})
        case ShowAll():
            own = {NAMESPACE + name: setting_text(target, name) for name in SETTING_NAMES}
            every = {**own, **every_default()}
            columns = [pa.array(values, pa.string()) for values in (every, every.values())]
            return pa.table(columns, names=["name", "setting"])
        case _:
            return SET_SCHEMA.empty_table()


def setting_text(target: RequestedTarget, name: str) -> str | None:
    """The value of a setting as it could be written in a SET; None if it has none."""
    values = {
        "half_width": target.half_width,
        "confidence": target.confidence,
        "epsilon": target.epsilon_cap,
        "relative": target.relative,
        "at_least": target.at_least,
        "decide": target.decide,
    }
    if name == "fallback":
        return None if target.fallback is None else target.fallback.value
    if name == "posterior":
        return None if target.posterior is None else target.posterior.value
    if name == AS_OF:
        return target.as_of
    if name in SWITCHES:
        return {None: None, True: "on", False: "off"}[getattr(target, name)]
    value = values[name]
    return None if value is None else _decimal_text(value)


def _decimal_text(value: float | Fraction) -> str:
    """A number as it could be written in a SET.

    >>> _decimal_text(50.0), _decimal_text(Fraction(1, 8)), _decimal_text(1e-7)
    ('50', '0.125', '0.0000001')
    """
    if isinstance(value, float):
        exact = Decimal(repr(value))
    else:  # was written as a decimal of at most 160 digits, and so divides without a rest
        exact = Context(prec=200).divide(Decimal(value.numerator), Decimal(value.denominator))
    text = f"{exact:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
