"""Writes the accuracy that is asked for as the headers that Tacit reads with every call.

Headers rather than settings of the session: they are there whenever a call is, also after the
driver has connected again by itself. The server checks what they say, and fills in the rest.
"""

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Final

HEADER_OPTION: Final = "adbc.flight.sql.rpc.call_header.tacit-"
UNITS_PER_EPSILON: Final = 2**40  # every cost is a whole number of these parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """What is asked for; what is left out is asked for elsewhere, or is the table's default.

    Parameters
    ----------
    half_width : float, optional
        How far an answer may be from the true value, up or down.
    relative : float, optional
        The half-width as a fraction of the answer, in place of `half_width`.
    at_least : float, optional
        With `relative`: the size that an answer is taken to have at least.
    confidence : float, optional
        The probability of staying within the half-width.
    epsilon : float, Decimal or str, optional
        The most that one statement may cost; 0 allows only what is free.
    fallback : str, optional
        What answers a statement that cannot be paid: ``history``, ``model`` or ``none``.
    """

    half_width: float | None = None
    relative: float | None = None
    at_least: float | None = None
    confidence: float | None = None
    epsilon: float | Decimal | str | None = None
    fallback: str | None = None

    def over(self, defaults: "Accuracy") -> "Accuracy":
        """Its own parts, the others by `defaults`; half_width and relative go apart."""
        if self.half_width is not None:
            defaults = replace(defaults, relative=None, at_least=None)
        if self.relative is not None:
            defaults = replace(defaults, half_width=None)
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return replace(defaults, **{name: value for name, value in pairs if value is not None})

    @property
    def headers(self) -> dict[str, str]:
        """The options by which ADBC sends it."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {
            HEADER_OPTION + name.replace("_", "-"): exact_text(value)
            for name, value in pairs
            if value is not None
        }


def exact_text(value: float | Decimal | str) -> str:
    """A number as text: a cost to its last digit, another double as it was written.

    >>> exact_text(0.1), exact_text(0.25), exact_text(2.0**-40)[:12]
    ('0.1', '0.25', '0.0000000000')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not (value * UNITS_PER_EPSILON).is_integer():
        return repr(value)
    return format(Decimal(value), "f")
