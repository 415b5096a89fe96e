"""Refusals: the exceptions with which Tacit refuses a request, in one tree with stable codes.

    TacitError
    ├── Refused                   a request stopped; nothing was charged, nothing was released
    │   ├── InvalidSql            sql_syntax          the text does not parse
    │   ├── UnsupportedSql        unsupported_sql     parses, but is not made of answers alone
    │   │   ├── PrivateRows       unsupported_sql     would show private rows
    │   │   └── ReadOnly          unsupported_sql     would change tables
    │   ├── UnknownName           unknown_name        no such table, column or alias
    │   ├── OutsideDomain         outside_domain      a literal that no public level can equal
    │   ├── NotCollected          not_collected       columns that no respondent was asked together
    │   ├── InvalidTarget         invalid_target      half_width, confidence or epsilon out of range
    │   ├── TooLarge              too_large           a stated limit on size was passed
    │   ├── TooSlow               too_slow            the time that one statement may take is over
    │   ├── NotCovered                                what may be spent does not cover the cost
    │   │   ├── BudgetExhausted   budget_exhausted    the table's budget cannot cover the cost
    │   │   ├── LimitReached      limit_reached       the caller's own limit cannot cover the cost
    │   │   ├── CostAboveCap      cost_above_cap      the request's own epsilon cap cannot cover it
    │   │   └── GenerationOver    generation_over     replaced data cannot be measured any more
    │   ├── TargetNotReached      target_not_reached  a ratio's or relative target costs too much
    │   ├── InvalidRequest        invalid_request     a call that is malformed outside its SQL
    │   ├── NameTaken             name_taken          the name is already in use
    │   ├── UnknownTicket         unknown_ticket      a result that is no longer (or never was) here
    │   ├── NotAuthenticated      not_authenticated   the call shows no credential that is in force
    │   ├── NotAllowed            not_allowed         the caller's role does not include this
    │   ├── TooManyCalls          too_many_calls      the caller has as many open calls as allowed
    │   ├── SourceUnavailable     source_unavailable  the private table cannot be read now
    │   ├── StoreUnavailable      store_unavailable   synthetic tables or answers cannot be kept now
    │   └── LedgerUnavailable     ledger_unavailable  the ledger cannot be written at the moment
    │       ├── LedgerLost        ledger_lost         the ledger has lost or changed entries
    │       └── ClockDoubtful     clock_doubtful      the clock is far ahead of the last entry
    └── CannotStart               the process refuses to serve
        ├── ConfigurationInvalid  configuration_invalid
        ├── LedgerCorrupt         ledger_corrupt
        ├── LedgerSetBack         ledger_set_back     the ledger lacks entries that it once had
        ├── LedgerMismatch        ledger_mismatch     the ledger belongs to another table or schema
        └── DataChanged           data_changed        the data is not what the ledger began with

A refusal says what is wrong in numbers that a program can act on, where there are any, and in a
sentence for a person. A message may quote the analyst's SQL and the public schema, never a value
read from data.
A broken invariant is none of these: it is an ordinary exception, and reaches the client only as an
incident number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cube.shortfall import FreeWidth, Shortfall


class TacitError(Exception):
    """Root of every error Tacit explains to people.

    Parameters
    ----------
    message : str
        One sentence: what is wrong.
    hint : str, optional
        One sentence: what would work instead.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def explain(self) -> str:
        """The text for a person: what is wrong, then the way out."""
        return self.message if self.hint is None else f"{self.message} {self.hint}"


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A place in the analyst's text; line and column count from 1."""

    line: int
    column: int

    def __post_init__(self) -> None:
        if self.line < 1 or self.column < 1:
            raise ValueError(f"lines and columns count from 1, but this is {self}")

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Refused(TacitError):
    """A request that stopped before anything was charged or released.

    Parameters
    ----------
    message, hint
        As for every `TacitError`.
    position : TextPosition, optional
        Where in the analyst's text it was found.
    """

    code = "refused"

    def __init__(
        self, message: str, *, hint: str | None = None, position: TextPosition | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.position = position

    def explain(self) -> str:
        """The text for a person: what is wrong, and where; then the way out."""
        if self.position is None:
            return super().explain()
        located = f"{self.message.removesuffix('.')} ({self.position})."
        return located if self.hint is None else f"{located} {self.hint}"


class InvalidSql(Refused):
    """The text is not one SQL statement of the dialect."""

    code = "sql_syntax"


class UnsupportedSql(Refused):
    """Valid SQL that is not made of aggregates of private tables and results of these alone."""

    code = "unsupported_sql"


class PrivateRows(UnsupportedSql):
    """A statement whose result would be private rows.

    Parameters
    ----------
    message, hint, position
        As for every refusal.
    table : str
        The private table.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        position: TextPosition | None = None,
        table: str = "",
    ) -> None:
        super().__init__(message, hint=hint, position=position)
        self.table = table


class ReadOnly(UnsupportedSql):
    """A statement that would change tables, which Tacit does not allow."""


class UnknownName(Refused):
    """A table, column or alias that the public schema does not have."""

    code = "unknown_name"


class OutsideDomain(Refused):
    """A literal compared with a column that can never hold it."""

    code = "outside_domain"


class NotCollected(Refused):
    """Columns of a collection that no respondent was asked about together."""

    code = "not_collected"


class InvalidTarget(Refused):
    """An accuracy target or epsilon cap that is not a number in range."""

    code = "invalid_target"


class TooLarge(Refused):
    """The request exceeds a stated limit on its size."""

    code = "too_large"


class TooSlow(Refused):
    """The statement took longer than the allowed time, or its client has gone."""

    code = "too_slow"


class NotCovered(Refused):
    """The cost exceeds the epsilon that may be spent. Only subclasses of this class are raised.

    Parameters
    ----------
    shortfall : Shortfall
        The numbers from which message and hint are made.
    """

    def __init__(self, shortfall: Shortfall) -> None:
        message, hint = self._words(shortfall)
        super().__init__(message, hint=hint)
        self.shortfall = shortfall

    @staticmethod
    def _words(shortfall: Shortfall) -> tuple[str, str]:
        """The message and the hint."""
        raise NotImplementedError  # each kind below says it in its own words


class BudgetExhausted(NotCovered):
    """The table's budget cannot cover the cost."""

    code = "budget_exhausted"

    @staticmethod
    def _words(shortfall: Shortfall) -> tuple[str, str]:
        return shortfall.budget_text, shortfall.way_out


class LimitReached(NotCovered):
    """The limit of the analyst, or of a group they belong to, cannot cover the cost."""

    code = "limit_reached"

    @staticmethod
    def _words(shortfall: Shortfall) -> tuple[str, str]:
        return shortfall.limit_text, shortfall.way_out


class CostAboveCap(NotCovered):
    """The epsilon cap named in the request cannot cover the cost."""

    code = "cost_above_cap"

    @staticmethod
    def _words(shortfall: Shortfall) -> tuple[str, str]:
        return shortfall.cap_text, shortfall.way_out_of_cap


class GenerationOver(NotCovered):
    """The request needs new measurements of an earlier generation, whose data was replaced."""

    code = "generation_over"

    @staticmethod
    def _words(shortfall: Shortfall) -> tuple[str, str]:
        return shortfall.over_text, shortfall.way_out_of_the_past


class TargetNotReached(Refused):
    """A target that depends on the answers could not be met; its measurements are kept.

    The one refusal after which something may have been charged; its message says so.

    Parameters
    ----------
    epsilon_spent : Fraction
        The epsilon that was charged.
    free : sequence of FreeWidth
        How well each answer with a target of its own is known now.
    because : Refused, optional
        The refusal that stopped the purchase.
    why : str
        The reason, where nothing was refused.
    way_out : str
        What would reach it, where that is known.
    """

    code = "target_not_reached"

    def __init__(
        self,
        *,
        epsilon_spent: Fraction,
        free: Sequence[FreeWidth],
        because: Refused | None = None,
        why: str = "",
        way_out: str = "",
    ) -> None:
        said = why if because is None else because.message
        kept = "The measurements made so far are paid for and kept." if epsilon_spent else ""
        widths = ", ".join(map(str, free))
        super().__init__(
            " ".join(["The target was not reached.", *filter(None, [said, kept])]),
            hint=f"These half-widths are free now: {widths}."
            if free
            else way_out or "Ask for a wider half_width.",
        )
        self.epsilon_spent = epsilon_spent
        self.free = tuple(free)
        self.shortfall = because.shortfall.unadvised if isinstance(because, NotCovered) else None


class InvalidRequest(Refused):
    """A call that is malformed outside its SQL."""

    code = "invalid_request"


class NameTaken(Refused):
    """The name of something new is already in use."""

    code = "name_taken"


class UnknownTicket(Refused):
    """A prepared statement or result that this process does not hold."""

    code = "unknown_ticket"


class SourceUnavailable(Refused):
    """The private table could not be read; a charge already made is completed later."""

    code = "source_unavailable"


class StoreUnavailable(Refused):
    """The stores beside the ledger (synthetic tables, answers, streams) could not be used.

    Measurements for a synthetic table are in the ledger; an answer may be sent again.
    """

    code = "store_unavailable"


class NotAuthenticated(Refused):
    """The call shows no credential, or none that is in force. The message does not say which."""

    code = "not_authenticated"


class NotAllowed(Refused):
    """The caller is known, but their role does not allow the request."""

    code = "not_allowed"


class TooManyCalls(Refused):
    """The caller has as many open calls as one caller may have."""

    code = "too_many_calls"


class LedgerUnavailable(Refused):
    """The ledger could not be read or written; a charge already made is completed later."""

    code = "ledger_unavailable"


class LedgerLost(LedgerUnavailable):
    """The ledger has lost or changed entries, or may have: this process stops using it."""

    code = "ledger_lost"


class ClockDoubtful(LedgerUnavailable):
    """The clock is far ahead of the ledger's last entry, and may be wrong."""

    code = "clock_doubtful"


class CannotStart(TacitError):
    """The process refuses to serve."""

    code = "cannot_start"


class ConfigurationInvalid(CannotStart):
    """The configuration file has problems, all of them listed in the message."""

    code = "configuration_invalid"


class LedgerCorrupt(CannotStart):
    """The ledger is damaged or was altered."""

    code = "ledger_corrupt"


class LedgerSetBack(CannotStart):
    """The ledger lacks entries that its mark, or a signed head, vouches for."""

    code = "ledger_set_back"


class LedgerMismatch(CannotStart):
    """The ledger was begun for another table, schema or budget rule."""

    code = "ledger_mismatch"


class DataChanged(CannotStart):
    """The private data is not the data the ledger began with."""

    code = "data_changed"
