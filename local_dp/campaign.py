"""A campaign: the public declaration of what respondents are asked, and how they randomise it.

It is fixed before the first answer, and checks itself: combinations of a view share no attribute,
every channel is for as many cells as its combination has, and no respondent loses more than epsilon
whichever combinations they answer. A respondent checks the same again, on their own
(`local_dp.respondent`), since they trust nobody.

Nothing here knows an answer, or who gave it.

The argument is in `proofs/campaigns.md`.
"""

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from cube.axis import N_LEVELS_MAX, NAME_LENGTH_MAX, Axis, LevelValue
from cube.exponential import exp_below
from cube.measurement import UNITS_PER_EPSILON
from cube.query import Scope, check_scope
from cube.runtime import cached_property
from local_dp.channels.choice import AnyChannel, best_channel
from local_dp.views import View

Level: TypeAlias = str | int | bool | None  # what JSON says the same way everywhere

N_ATTRIBUTES_MAX = 1000
N_COMBINATIONS_MAX = N_VIEWS_MAX = 10_000
EPSILON_UNITS_MAX = 16 * UNITS_PER_EPSILON  # true in all but 1e-7 is not private
RATIO_BITS = 192  # a ratio is rounded up to so many behind the point, so that products stay short
INTEGER_MAX = 2**53 - 1  # a larger one is not the same number in every reader of JSON


@dataclass(frozen=True)
class Attribute:
    """What is asked, and the answers that there are.

    Parameters
    ----------
    name : str
    levels : tuple of str, int, bool or None
        Distinct, at least two. The order is that of positions in tables.
    """

    name: str
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > NAME_LENGTH_MAX or not self.name.isprintable():
            raise ValueError(f"an attribute's name is 1 to {NAME_LENGTH_MAX} printable characters")
        if not 2 <= len(self.levels) <= N_LEVELS_MAX:  # noqa: PLR2004 - one level says nothing
            raise ValueError(f"{self.name}: 2 to {N_LEVELS_MAX} levels are needed")
        for level in self.levels:
            if level is not None and type(level) not in {str, int, bool}:
                raise TypeError(f"{self.name}: {level!r} is no text, whole number or truth value")
            if type(level) is int and abs(level) > INTEGER_MAX:
                raise ValueError(f"{self.name}: {level} is beyond 2**53")
        # In Python, 1 equals True; in JSON it does not.
        if len({(type(level), level) for level in self.levels}) != len(self.levels):
            raise ValueError(f"{self.name}: a level is listed twice")

    @classmethod
    def of_axis(cls, axis: Axis) -> "Attribute":
        """An axis of a schema; days, times and the lower ends of bins are said as text."""
        return cls(axis.name, tuple(_plain(level) for level in axis.levels))


def _plain(level: LevelValue) -> Level:
    if isinstance(level, dt.date):
        return level.isoformat()
    return repr(level) if isinstance(level, float) else level


@dataclass(frozen=True)
class Combination:
    """Attributes that are answered together, and the channel of that answer.

    Parameters
    ----------
    scope : tuple of str
        The attributes' names, sorted. Cells are in the order of the last one's levels first, as
        those of an array with an axis for each.
    channel : RandomisedResponse, UnaryEncoding or LocalHashing
    """

    scope: Scope
    channel: AnyChannel

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if not self.scope:
            raise ValueError("a combination has at least one attribute")


@dataclass(frozen=True)
class Campaign:
    """What is asked, of whom how much, and how it is randomised.

    Parameters
    ----------
    name : str
    attributes : tuple of Attribute
    combinations : tuple of Combination
    views : tuple of tuple of int
        Places of combinations. Each respondent is asked about one view.
    epsilon_units : int
        What a respondent loses at most, in units of 2**-40.
    n_answered : int
        How many combinations of their view a respondent answers. One is best: it has all of
        epsilon, and tables of different combinations are about different respondents.
    """

    name: str
    attributes: tuple[Attribute, ...]
    combinations: tuple[Combination, ...]
    views: tuple[tuple[int, ...], ...]
    epsilon_units: int
    n_answered: int = 1

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > NAME_LENGTH_MAX or not self.name.isprintable():
            raise ValueError(f"a campaign's name is 1 to {NAME_LENGTH_MAX} printable characters")
        if not 1 <= len(self.attributes) <= N_ATTRIBUTES_MAX:
            raise ValueError(f"1 to {N_ATTRIBUTES_MAX} attributes are needed")
        if len(self.by_name) != len(self.attributes):
            raise ValueError("two attributes have the same name")
        if not 1 <= len(self.combinations) <= N_COMBINATIONS_MAX:
            raise ValueError(f"1 to {N_COMBINATIONS_MAX} combinations are needed")
        if len(self.views) > N_VIEWS_MAX:
            raise ValueError(f"at most {N_VIEWS_MAX} views are possible")
        if type(self.epsilon_units) is not int or not 0 < self.epsilon_units <= EPSILON_UNITS_MAX:
            raise ValueError(f"an epsilon is 1 to {EPSILON_UNITS_MAX} units of 2**-40")
        for combination in self.combinations:
            self._check_cells(combination)
        if {place for view in self.views for place in view} != set(range(len(self.combinations))):
            raise ValueError("every combination is in a view, and views hold nothing else")
        self._check_views()

    def _check_cells(self, combination: Combination) -> None:
        unknown = [name for name in combination.scope if name not in self.by_name]
        if unknown:
            raise ValueError(f"no attribute is called {unknown[0]}")
        if self.n_cells(combination.scope) != combination.channel.n_cells:
            raise ValueError(f"the channel of {combination.scope} is for another number of cells")

    def _check_views(self) -> None:
        """What is needed of a combination is computed once: a view costs a step for each place.

        Ratios are rounded up as at a respondent, so that both admit the same.
        """
        bits = {name: 1 << place for place, name in enumerate(self.by_name)}
        named = [sum(bits[name] for name in one.scope) for one in self.combinations]
        ratios = [math.ceil(one.channel.ratio * (1 << RATIO_BITS)) for one in self.combinations]
        limit = int(exp_below(self.epsilon_units) * (1 << RATIO_BITS))  # exactly: it has 128 bits
        for view in self.views:
            seen = 0
            for place in view:
                if seen & named[place]:
                    raise ValueError("combinations of a view share an attribute")
                seen |= named[place]
            if not 1 <= self.n_answered <= len(view):
                raise ValueError(
                    f"a view has {len(view)} combinations, not {self.n_answered} or more"
                )
            lost = 1 << RATIO_BITS
            for ratio in sorted((ratios[place] for place in view), reverse=True)[: self.n_answered]:
                lost = -(-lost * ratio >> RATIO_BITS)
                if lost > limit:
                    raise ValueError("a respondent could lose more than the campaign's epsilon")

    @cached_property
    def by_name(self) -> dict[str, Attribute]:
        """The attributes by their names."""
        return {attribute.name: attribute for attribute in self.attributes}

    @property
    def epsilon(self) -> Fraction:
        """What a respondent loses at most."""
        return Fraction(self.epsilon_units, UNITS_PER_EPSILON)

    def sizes(self, scope: Scope) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return tuple(len(self.by_name[name].levels) for name in scope)

    def n_cells(self, scope: Scope) -> int:
        """The number of products of levels."""
        return math.prod(self.sizes(scope))

    def expected_share(self, place: int) -> Fraction:
        """The expected part of the respondents who answer a combination.

        Each respondent draws a view, and of that as many combinations as are answered.
        """
        holding = (Fraction(self.n_answered, len(view)) for view in self.views if place in view)
        return sum(holding, Fraction(0)) / len(self.views)

    def expected_share_of_both(self, one: int, other: int) -> Fraction:
        """The expected part of the respondents who answer two different combinations."""
        m = self.n_answered
        holding = (
            Fraction(m * (m - 1), len(view) * (len(view) - 1))
            for view in self.views
            if one in view and other in view
        )
        return sum(holding, Fraction(0)) / len(self.views)

    def covering(self, scope: Scope) -> tuple[int, ...]:
        """The places of the combinations that have all of these attributes."""
        wanted = set(scope)
        return tuple(
            place for place, one in enumerate(self.combinations) if wanted.issubset(one.scope)
        )


def planned_campaign(
    name: str,
    attributes: Sequence[Attribute],
    views: Sequence[View],
    *,
    epsilon_units: int,
    n_answered: int = 1,
) -> Campaign:
    """The campaign of a design, each combination with the channel of least variance.

    Where a respondent answers several combinations, each has an equal part of epsilon. Overlapping
    combinations of which everybody answers one are views of a single combination.

    Examples
    --------
    >>> from cube.measurement import UNITS_PER_EPSILON
    >>> yes_no = [Attribute(name, ("no", "yes")) for name in ("owns", "rents")]
    >>> campaign = planned_campaign(
    ...     "homes", yes_no, [(("owns", "rents"),)], epsilon_units=UNITS_PER_EPSILON
    ... )
    >>> round(float(campaign.combinations[0].channel.keep), 4)
    0.3005
    """
    if n_answered < 1:
        raise ValueError("a respondent answers at least one combination")
    sizes = {attribute.name: len(attribute.levels) for attribute in attributes}
    scopes = list(dict.fromkeys(scope for view in views for scope in view))
    unknown = {name for scope in scopes for name in scope} - sizes.keys()
    if unknown:
        raise ValueError(f"no attribute is called {min(unknown)}")
    each = epsilon_units // n_answered
    return Campaign(
        name,
        tuple(attributes),
        tuple(
            Combination(scope, best_channel(math.prod(sizes[one] for one in scope), each))
            for scope in scopes
        ),
        tuple(tuple(scopes.index(scope) for scope in view) for view in views),
        epsilon_units,
        n_answered,
    )
