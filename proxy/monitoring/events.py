"""Events that the process reports while it answers: an interface, and a listener that ignores all.

The engine reports which stage of an answer it is in and what kind of answer it gave; the firewall
reports how each call ended. Nothing depends on who listens: Prometheus
(`proxy.monitoring.metrics`), a test, or no listener.

No event contains SQL, a result or a name that a client chose. The listener measures times itself.
"""

from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Final, Protocol
from weakref import WeakSet

# How a call ended if it was not refused; refusals have codes of their own.
OK_CODE: Final = "ok"
INTERNAL_CODE: Final = "internal_error"
CANCELLED_CODE: Final = "cancelled"
NO_METHOD_CODE: Final = "unimplemented"

# Messages of the PostgreSQL wire, as methods.
POSTGRES_METHOD: Final = "/postgresql/"
POSTGRES_MESSAGES: Final = ("Login", "Query", "Parse", "Bind", "Describe", "Execute", "Close")


class Stage(StrEnum):
    """Where the time of a call goes. The time of an inner stage is not counted in the outer one."""

    PLAN = "plan"  # from SQL to linear queries
    WAIT = "wait"  # for a table that others are using, and for what others are buying
    LOOK = "look"  # estimates from the history
    PRICE = "price"  # candidates for measurement, and the choice among them
    CHARGE = "charge"  # until the charge is durable
    MEASURE = "measure"  # the read and the noise, until the measurement is durable
    OUTER = "outer"  # formulas, intervals, and SQL on answers
    WIRE = "wire"  # the rest of a call: identity, sessions, Arrow, sending


class AnswerKind(StrEnum):
    """Whether a statement's answer on one private table cost anything."""

    FREE = "free"  # known from the history
    PAID = "paid"  # something was charged for it
    PUBLIC = "public"  # no private table was read; the table name is empty


class Watcher(Protocol):
    """A listener for events. Called from every thread; never raises, never waits."""

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        """Time what happens inside as this stage."""
        ...

    def purchase(self) -> AbstractContextManager[object]:
        """Count what happens inside as one purchase that is under way."""
        ...

    def answered(self, table: str, kind: AnswerKind) -> None:
        """A statement was answered; reported once for each private table that it reads."""
        ...

    def took_much(self, table: str) -> None:
        """One statement took a tenth of a table's budget, or more."""
        ...

    def called(self, method: str, code: str) -> None:
        """A call ended: its full method name, and "ok" or the code it failed with."""
        ...

    def incident(self) -> None:
        """An unexpected error occurred, and has an incident number in the log."""
        ...


class Unwatched:
    """A `Watcher` that ignores every event."""

    def stage(self, stage: Stage) -> AbstractContextManager[object]:  # noqa: ARG002 - the protocol's
        """Do nothing."""
        return _NOTHING

    def purchase(self) -> AbstractContextManager[object]:
        """Do nothing."""
        return _NOTHING

    def answered(self, table: str, kind: AnswerKind) -> None:
        """Do nothing."""

    def took_much(self, table: str) -> None:
        """Do nothing."""

    def called(self, method: str, code: str) -> None:
        """Do nothing."""

    def incident(self) -> None:
        """Do nothing."""


_NOTHING: Final = nullcontext()  # has no state, so one instance serves all threads
UNWATCHED: Final = Unwatched()


_UNTRACED: Final[WeakSet[object]] = WeakSet()


def leave_no_trace(call: object) -> None:
    """Neither count nor log a call, if nothing goes wrong: it brings arrivals to a stream.

    Parameters
    ----------
    call : object
        The context of the call, while it lasts.
    """
    _UNTRACED.add(call)


def leaves_trace(call: object) -> bool:
    """Whether a call is counted and logged even if nothing goes wrong."""
    return call not in _UNTRACED
