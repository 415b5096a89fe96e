"""A campaign from a file of attributes: a TOML file with the levels of each."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, InvalidTarget
from local_dp.campaign import EPSILON_UNITS_MAX, Attribute, Campaign, planned_campaign
from local_dp.views import PAIR, View, designed_views
from proxy.api.epsilon import exact_epsilon

EXAMPLE: Final = (
    'smokes = [false, true], a line for each attribute, and education = ["none", "..."]'
)


def attributes_in(path: Path) -> tuple[Attribute, ...]:
    """The attributes of a file, in its order.

    Raises
    ------
    InvalidRequest
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        found = tuple(
            Attribute(name, tuple(levels if isinstance(levels, list) else ()))
            for name, levels in content.items()
        )
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError) as error:
        raise InvalidRequest(
            f"{path} does not hold attributes: {error}.", hint=f"Write {EXAMPLE}."
        ) from None
    if not found:
        raise InvalidRequest(f"{path} holds no attributes.", hint=f"Write {EXAMPLE}.")
    return found


def epsilon_units(text: str) -> int:
    """What a respondent loses at most, in units of 2**-40, rounded down."""
    units = int(exact_epsilon("epsilon", text) * UNITS_PER_EPSILON)
    if not 0 < units <= EPSILON_UNITS_MAX:
        most = EPSILON_UNITS_MAX // UNITS_PER_EPSILON
        raise InvalidTarget(f"A respondent's epsilon is above 0 and at most {most}, not {text}.")
    return units


def views_of(names: Sequence[str], size: int) -> tuple[View, ...]:
    """The views in which combinations of so many attributes cover every pair of them."""
    if size < PAIR:
        return (tuple((name,) for name in names),)
    if size > len(names):
        raise InvalidRequest(
            f"There are {len(names)} attributes, so no combination of {size}.",
            hint="Name a smaller --size; 1 asks about each attribute by itself.",
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
    views = views_of([one.name for one in attributes], min(size, len(attributes)))
    units = epsilon_units(epsilon)
    try:
        return planned_campaign(name, attributes, views, epsilon_units=units, n_answered=n_answered)
    except ValueError as error:
        raise InvalidRequest(f"This is no campaign: {error}.") from None
