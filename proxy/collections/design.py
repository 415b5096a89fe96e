"""The campaign that asks about every pair of attributes, or every larger set: its design."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, InvalidTarget
from local_dp.campaign import EPSILON_UNITS_MAX, Attribute, Campaign, planned_campaign
from local_dp.views import PAIR, View, designed_views
from proxy.api.epsilon import exact_epsilon

# Of an answer. Below, coins of 24 bits waste much of it, and a million people tell nothing.
EPSILON_MIN: Final = Fraction(1, 10_000)
EPSILON_UNITS_MIN: Final = int(EPSILON_MIN * UNITS_PER_EPSILON)


def epsilon_units(text: str) -> int:
    """What a respondent loses at most, in units of 2**-40, rounded down.

    Raises
    ------
    InvalidTarget
    """
    units = int(exact_epsilon("epsilon", text) * UNITS_PER_EPSILON)
    if not EPSILON_UNITS_MIN <= units <= EPSILON_UNITS_MAX:
        least, most = float(EPSILON_MIN), EPSILON_UNITS_MAX // UNITS_PER_EPSILON
        raise InvalidTarget(
            f"A respondent's epsilon is at least {least} and at most {most}, not {text}."
        )
    return units


def views_of(names: Sequence[str], size: int) -> tuple[View, ...]:
    """The views in which combinations of so many attributes cover every pair of them."""
    if size < PAIR:
        return (tuple((name,) for name in names),)
    if size > len(names):
        raise InvalidRequest(
            f"There are {len(names)} attributes, so no combination of {size}.",
            hint="Name a smaller size; 1 asks about each attribute by itself.",
        )
    return designed_views(names, size)


def designed_campaign(
    name: str, attributes: Sequence[Attribute], *, epsilon: str, size: int, n_answered: int = 1
) -> Campaign:
    """The campaign that asks about combinations of so many attributes.

    Raises
    ------
    InvalidRequest, InvalidTarget
    """
    if size < 1:
        raise InvalidRequest(
            f"A combination has at least one attribute, not {size}.",
            hint="2 asks about every pair of attributes, 1 about each by itself.",
        )
    units = epsilon_units(epsilon)
    if n_answered > 1 and units // n_answered < EPSILON_UNITS_MIN:
        raise InvalidTarget(
            f"An epsilon of {epsilon} for {n_answered} answers is less than "
            f"{float(EPSILON_MIN)} for each.",
            hint="Ask for fewer answers of each respondent, or with a larger epsilon.",
        )
    try:
        views = views_of([one.name for one in attributes], min(size, len(attributes)))
        return planned_campaign(name, attributes, views, epsilon_units=units, n_answered=n_answered)
    except ValueError as error:
        raise InvalidRequest(f"This is no campaign: {error}.") from None
