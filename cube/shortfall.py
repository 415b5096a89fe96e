"""The numbers of a refusal for lack of budget, and the texts that are made from them.

Programs read the numbers, and people read the sentences that are made from them here. A number
that the caller may not learn is None, and no sentence mentions it.

Values only. Other modules decide whom to refuse, and what they may learn.
"""

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final, Self

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
