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

A refusal for lack of budget has numbers, which programs read, and texts that are made from them
here. A number that the caller may not learn is None, and no sentence mentions it. Other modules
decide whom to refuse, and what they may learn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import ClassVar, Final, Self

N_DIGITS: Final = 6  # of an epsilon in a sentence
N_WIDTH_DIGITS: Final = 4  # of a half-width that is offered

_WIDER: Final = (
    "Ask for a wider half_width or a lower confidence; queries that the history can "
    "answer stay free."
)
_WIDER_OR_FREE: Final = (
    "Ask for a wider half_width or a lower confidence, or with fallback => 'history' for what is "
    "free."
)
_WIDER_UNSEEN: Final = "Ask for a wider half_width or a lower confidence."
_WIDER_OR_DEARER: Final = "Raise the epsilon option, or ask for a wider half_width."
_WIDER_OR_NOW: Final = "Ask for no more accuracy than was known then, or leave out AS OF."
_SMALLER: Final = "Ask for a smaller epsilon. With 0, the table is made from the history alone."
_SMALLER_OR_DEARER: Final = "Ask for a smaller epsilon, or raise tacit.epsilon."


@dataclass(frozen=True, slots=True)
class OfferedWidth:
    """Half-widths to ask for instead of the requested ones.

    Both numbers have four digits and are rounded up, so that asking for just this much works.

    Parameters
    ----------
    factor : float
        The number to multiply every half-width by.
    half_width : float, optional
        The resulting half-width; None if the request has several, or if it is not finite.
    """

    factor: float
    half_width: float | None = None

    def __post_init__(self) -> None:
        for number in (self.factor, self.half_width):
            if number is not None and not (math.isfinite(number) and number > 0):
                raise ValueError(f"an offered width must be a positive number, not {number}")

    @classmethod
    def widened(cls, factor: float, half_widths: set[float]) -> Self:
        """The half-widths of a request, multiplied.

        >>> OfferedWidth.widened(1.50001, {10.0}), OfferedWidth.widened(2.0, {1.0, 3.0})
        (OfferedWidth(factor=1.501, half_width=15.01), OfferedWidth(factor=2.0, half_width=None))
        """
        only = _rounded_up(factor * next(iter(half_widths))) if len(half_widths) == 1 else math.inf
        return cls(_rounded_up(factor), only if math.isfinite(only) else None)

    def __str__(self) -> str:
        if self.half_width is None:
            return f"{_plain(self.factor)} times the half_widths asked for"
        return f"half_width {_plain(self.half_width)}"


@dataclass(frozen=True, slots=True)
class FreeWidth:
    """The half-width at which one answer, by its name in the result, is free now."""

    answer: str
    half_width: float

    def __str__(self) -> str:
        return f"{self.answer} {self.half_width:.6g}"


@dataclass(frozen=True, slots=True)
class ColumnCost:
    """One answer of a request that is too dear.

    Parameters
    ----------
    answer : str
        The name of the answer's column in the result.
    epsilon : Fraction
        Its share of the cost; rows that several answers share are counted for the first.
    free : float, optional
        The half-width at which it is free now; None if nothing is known of it.
    """

    answer: str
    epsilon: Fraction
    free: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """The cost of a request, the epsilon that may be spent, and requests that would work instead.

    Parameters
    ----------
    table : str
        The private table.
    epsilon_needed : Fraction
        The epsilon that the request would add to the table's cost.
    epsilon_left : Fraction, optional
        The most that it may add; None if the caller may not learn it.
    account : str
        Whose limit it is, as in ``analyst:ann``; empty for a budget or a cap, and if hidden.
    window : str
        The window of that limit, such as ``day``; empty if it never ends.
    free, fitting : OfferedWidth, optional
        What the history answers for nothing, and the narrowest that was found to be within what
        is left. None if there is none, if it was not found in time, or if it may not be learned.
    renews_on : str
        The day on which the budget renews, if it is the budget that is too small and would then
        cover this; empty otherwise, and if hidden.
    is_synthetic : bool
        Whether it is a synthetic table that is asked for: its epsilon is chosen, and it has no
        half-width.
    columns : tuple of ColumnCost
        The answers that are asked for, in order; empty if that was not found in time, or may not be
        learned.
    """

    table: str
    epsilon_needed: Fraction
    epsilon_left: Fraction | None
    account: str = ""
    window: str = ""
    free: OfferedWidth | None = None
    fitting: OfferedWidth | None = None
    renews_on: str = ""
    is_synthetic: bool = False
    columns: tuple[ColumnCost, ...] = ()

    def __post_init__(self) -> None:
        left = self.epsilon_left
        for epsilon in (self.epsilon_needed, left):
            if not isinstance(epsilon, Fraction | None):
                raise TypeError("epsilon must be exact: build it from a Fraction, not a float")
            if epsilon is not None and epsilon < 0:
                raise ValueError(f"epsilon must not be negative, but is {epsilon}")
        if left is not None and self.epsilon_needed <= left:
            raise ValueError("the epsilon left must be below the epsilon needed")
        told = (self.account, self.window, self.free, self.fitting, self.renews_on, self.columns)
        if left is None and any(told):
            raise ValueError(
                "where the epsilon left is hidden, everything that reveals it must be hidden too"
            )

    @property
    def unadvised(self) -> "Shortfall":
        """The same, without what could be asked for instead."""
        return replace(self, free=None, fitting=None, columns=())

    @property
    def budget_text(self) -> str:
        """The sentence if the table's budget is too small."""
        if self.epsilon_left is None:
            return self._unseen_text
        return f"{self._cost}, and {self.table} has {_down(self.epsilon_left)} left."

    @property
    def limit_text(self) -> str:
        """The sentence if somebody's limit is too small."""
        if self.epsilon_left is None:
            return self._unseen_text
        when = f" this {self.window}" if self.window else ""
        return (
            f"{self._cost}, and the next query of {self.account} may cost at most "
            f"{_down(self.epsilon_left)} on {self.table}{when}."
        )

    @property
    def cap_text(self) -> str:
        """The sentence if the request's own cap is too small."""
        if self.epsilon_left is None:
            return self._unseen_text
        return f"{self._cost}, more than the cap of {_down(self.epsilon_left)}."

    @property
    def way_out(self) -> str:
        """What to do about a budget or a limit that is too small."""
        when = [f"The budget renews on {self.renews_on}."] if self.renews_on else []
        if self.is_synthetic:
            return " ".join([*when, _SMALLER])
        offers = [*self._offers("What is left pays for"), *when]
        wider = _WIDER if self.free is None else _WIDER_OR_FREE
        return " ".join([*offers, _WIDER_UNSEEN if self.epsilon_left is None else wider])

    @property
    def way_out_of_cap(self) -> str:
        """What to do about a cap that is too small."""
        if self.is_synthetic:
            return _SMALLER_OR_DEARER
        return " ".join([*self._offers("Within the cap"), _WIDER_OR_DEARER])

    @property
    def over_text(self) -> str:
        """The sentence if the data was replaced, so that nothing is spent on it any more."""
        return f"The data of {self.table} was replaced, so it cannot be measured any more."

    @property
    def way_out_of_the_past(self) -> str:
        """What to ask of a history that does not grow any more."""
        return " ".join([*self._offers("Free right now"), _WIDER_OR_NOW])

    @property
    def _cost(self) -> str:
        verb = "The table may cost" if self.is_synthetic else "This costs"
        return f"{verb} epsilon {_text(self.epsilon_needed, ROUND_CEILING)}"

    @property
    def _unseen_text(self) -> str:
        return f"{self._cost}, more than what is left of {self.table}'s budget or of a limit."

    def _offers(self, fitting: str) -> list[str]:
        costs = [f"{one.answer} {_text(one.epsilon, ROUND_CEILING)}" for one in self.columns]
        by_column = [f"Of that, by column: {', '.join(costs)}."] if len(costs) > 1 else []
        widths = [FreeWidth(one.answer, one.free) for one in self.columns if one.free is not None]
        free: object = self.free
        if len(self.columns) > 1 and len(widths) == len(self.columns):
            free = "half_width of " + ", ".join(map(str, widths))
        said = (("Free right now", free), (fitting, self.fitting))
        return by_column + [f"{what}: {offered}." for what, offered in said if offered is not None]


def _text(epsilon: Fraction, rounding: str) -> str:
    """Six digits of an epsilon: a price rounded up, what is left rounded down."""
    context = Context(prec=N_DIGITS, rounding=rounding)
    rounded = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return f"{rounded.normalize(context):f}"


def _down(epsilon: Fraction) -> str:
    return _text(epsilon, ROUND_FLOOR)


def _rounded_up(number: float) -> float:
    context = Context(prec=N_WIDTH_DIGITS, rounding=ROUND_CEILING)
    return float(context.create_decimal(Decimal(number)))


def _plain(number: float) -> str:
    """A number without an exponent."""
    return f"{Decimal(repr(number)).normalize():f}"


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
