"""What the process says of itself while it answers: a port, and the listener that hears nothing.

The engine says which stage of an answer it is in and what kind of answer it gave; the firewall says
how each call ended. Nothing depends on who listens: Prometheus (`proxy.monitoring.metrics`), a
test, nobody.

Nothing said here is SQL, a result or a name that a client chose. The times are the listener's own.
"""

from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Final, Protocol

# How a call ended, when it did not end in a refusal: those have codes of their own.
OK_CODE: Final = "ok"
INTERNAL_CODE: Final = "internal_error"
CANCELLED_CODE: Final = "cancelled"
NO_METHOD_CODE: Final = "unimplemented"


class Stage(StrEnum):
    """Where the time of a call goes. A stage inside another takes its time from the outer one's."""

    PLAN = "plan"  # from SQL to linear queries
    WAIT = "wait"  # for a table that others are using, and for what others are buying
    LOOK = "look"  # what the history says of them
    PRICE = "price"  # what could be measured, and what to choose
    CHARGE = "charge"  # until the charge is durable
    MEASURE = "measure"  # the read and the noise, until the measurement is durable
    OUTER = "outer"  # formulas, intervals, and SQL on answers
    WIRE = "wire"  # everything else of a call: identity, sessions, Arrow, sending


class AnswerKind(StrEnum):
    """What a statement asked of one private table, and whether that cost something."""

    FREE = "free"  # known from the history
    PAID = "paid"  # something was charged for it
    PUBLIC = "public"  # no private table was asked; its table is the empty text


class Watcher(Protocol):
    """Who hears of it. Called from every thread; never raises, never waits."""

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        """Time what happens inside as this stage."""
        ...

    def purchase(self) -> AbstractContextManager[object]:
        """Count what happens inside as one purchase that is under way."""
        ...

    def answered(self, table: str, kind: AnswerKind) -> None:
        """A statement was answered; said once for each private table that it asks."""
        ...

    def called(self, method: str, code: str) -> None:
        """A call ended: its full method name, and "ok" or the code it failed with."""
        ...

    def incident(self) -> None:
        """Something unexpected went wrong, and has an incident number in the log."""
        ...


class Unwatched:
    """A `Watcher` that hears nothing."""

    def stage(self, stage: Stage) -> AbstractContextManager[object]:  # noqa: ARG002 - the protocol's
        """Nothing."""
        return _NOTHING

    def purchase(self) -> AbstractContextManager[object]:
        """Nothing."""
        return _NOTHING

    def answered(self, table: str, kind: AnswerKind) -> None:
        """Nothing."""

    def called(self, method: str, code: str) -> None:
        """Nothing."""

    def incident(self) -> None:
        """Nothing."""


_NOTHING: Final = nullcontext()  # holds no state, so one serves all threads
UNWATCHED: Final = Unwatched()
