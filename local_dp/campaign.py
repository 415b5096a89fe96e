"""Defines a campaign: its design of views, its declaration, and its canonical text.

A design says which attributes are asked about together.

A view is a list of combinations without a common attribute; every pair of attributes (or every
larger set, if asked) lies inside a combination of some view. A design is made of names alone, so it
costs no privacy, and hides nothing either. The same names give the same design.

A campaign is the public declaration of the questions and of how respondents randomise answers.

It is fixed before the first answer, and checks itself: combinations of a view share no attribute,
every channel is for as many cells as its combination has, and no respondent loses more than epsilon
whichever combinations they answer. A respondent repeats these checks (`local_dp.respondent`), and
so need not trust the server.

Nothing here knows an answer, or who gave it.

The argument is in `proofs/campaigns.md`.

A campaign as canonical JSON text, and back; its digest is its name for ever.

The text is what respondents read, in whatever language they are written: probabilities are
``"numerator/denominator"``, all other numbers are whole and below 2**53. Reading checks everything
that making a campaign checks, and refuses what it does not know.
"""

import datetime as dt
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.axis import N_LEVELS_MAX, NAME_LENGTH_MAX, Axis, LevelValue
from cube.encoding import canonical_json
from cube.exponential import exp_below
from cube.measurement import UNITS_PER_EPSILON
from cube.query import Scope, check_scope
from cube.refusals import InvalidRequest, TooLarge
from cube.runtime import cached_property
from local_dp.channels import (
    AnyChannel,
    LocalHashing,
    RandomisedResponse,
    UnaryEncoding,
    best_channel,
)

View: TypeAlias = tuple[Scope, ...]

N_TRIED = 200  # random views; the one that covers most is kept
N_SETS_MAX = 10_000  # that are to be covered: beyond this, a design takes more than seconds
PAIR = 2


def designed_views(names: Sequence[str], size: int, *, strength: int = PAIR) -> tuple[View, ...]:
    """Views of disjoint combinations that together cover every set of `strength` attributes.

    Parameters
    ----------
    names : sequence of str
        The attributes, distinct.
    size : int
        Of each combination, from 2 to the number of attributes.
    strength : int
        The size of the sets to be covered, from 2 to `size`.

    Returns
    -------
    tuple of tuple of scopes
        For pairs each pair exactly once, in the fewest views there can be. Larger combinations are
        searched for: a set may be covered more than once. Attributes that are left over are not in
        a view.

    Examples
    --------
    >>> for view in designed_views(("a", "b", "c", "d"), 2):
    ...     print(view)
    (('a', 'd'), ('b', 'c'))
    (('a', 'c'), ('b', 'd'))
    (('a', 'b'), ('c', 'd'))
    """
    if len(set(names)) != len(names):
        raise ValueError("two attributes have the same name")
    if not PAIR <= size <= len(names):
        raise ValueError(f"a combination must have 2 to {len(names)} attributes, not {size}")
    if not PAIR <= strength <= size:
        raise ValueError(f"strength must be from 2 to {size}, not {strength}")
    if comb(len(names), strength) > N_SETS_MAX:
        raise TooLarge(
            f"The design has more than {N_SETS_MAX} sets of attributes. Use fewer attributes."
        )
    return _round_robin(names) if size == PAIR else _greedy(names, size, strength)


def _round_robin(names: Sequence[str]) -> tuple[View, ...]:
    """The circle method: one stays, the others move on; a bye where the number is odd."""
    places: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    views = []
    for _ in range(len(places) - 1):
        facing = zip(places, reversed(places), strict=True)
        met = [_scope(pair) for pair in list(facing)[: len(places) // 2] if None not in pair]
        views.append(tuple(met))
        places = [places[0], places[-1], *places[1:-1]]
    return tuple(views)


def _scope(names: Sequence[str | None]) -> Scope:
    return tuple(sorted(name for name in names if name is not None))


def _greedy(names: Sequence[str], size: int, strength: int) -> tuple[View, ...]:
    """One view after another, each the best of many random ones.

    Every view that is tried begins with a set that is not covered, so that there is progress, and
    no more rounds than sets.
    """
    # The design is public and the same for all; what is drawn here protects nothing.
    digest = sha256("\0".join([*names, str(size), str(strength)]).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    n_groups = len(names) // size
    missing = np.zeros((len(names),) * strength, dtype=bool)
    for one in combinations(range(len(names)), strength):
        missing[one] = True
    views = []
    while missing.any():
        first = np.argwhere(missing)[0]
        others = np.setdiff1d(np.arange(len(names)), first)
        tried = np.array([np.concatenate([first, rng.permutation(others)]) for _ in range(N_TRIED)])
        groups = np.sort(tried[:, : n_groups * size].reshape(N_TRIED, n_groups, size), axis=2)
        best = groups[_n_new(groups, missing, strength).argmax()]
        for inside in combinations(range(size), strength):
            missing[tuple(best[:, inside].T)] = False
        views.append(tuple(_scope([names[place] for place in group]) for group in best))
    return tuple(views)


def _n_new(
    groups: NDArray[np.int64], missing: NDArray[np.bool_], strength: int
) -> NDArray[np.int64]:
    """How many missing sets each of the tried views covers."""
    found = np.zeros(len(groups), dtype=np.int64)
    for inside in combinations(range(groups.shape[2]), strength):
        found += missing[tuple(np.moveaxis(groups[:, :, inside], 2, 0))].sum(axis=1)
    return found


Level: TypeAlias = str | int | bool | None  # what JSON says the same way everywhere

N_ATTRIBUTES_MAX = 1000
N_COMBINATIONS_MAX = N_VIEWS_MAX = 10_000
EPSILON_UNITS_MAX = 16 * UNITS_PER_EPSILON  # true in all but 1e-7 is not private
RATIO_BITS = 192  # a ratio is rounded up to so many behind the point, so that products stay short
INTEGER_MAX = 2**53 - 1  # a larger one is not the same number in every reader of JSON


@dataclass(frozen=True)
class Attribute:
    """A question, and its possible answers.

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
            raise ValueError(
                f"an attribute's name must have 1 to {NAME_LENGTH_MAX} printable characters"
            )
        if not 2 <= len(self.levels) <= N_LEVELS_MAX:  # noqa: PLR2004 - one level says nothing
            raise ValueError(f"{self.name} must have 2 to {N_LEVELS_MAX} levels")
        for level in self.levels:
            if level is not None and type(level) not in {str, int, bool}:
                raise TypeError(
                    f"{self.name}: the level {level!r} is not a string, an integer or a boolean"
                )
            if type(level) is int and abs(level) > INTEGER_MAX:
                raise ValueError(f"{self.name}: the level {level} is larger than 2**53")
        # In Python, 1 equals True; in JSON it does not.
        if len({(type(level), level) for level in self.levels}) != len(self.levels):
            raise ValueError(f"{self.name} lists a level twice")

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
            raise ValueError("a combination must have at least one attribute")


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
            raise ValueError(
                f"a campaign's name must have 1 to {NAME_LENGTH_MAX} printable characters"
            )
        if not 1 <= len(self.attributes) <= N_ATTRIBUTES_MAX:
            raise ValueError(f"a campaign must have 1 to {N_ATTRIBUTES_MAX} attributes")
        if len(self.by_name) != len(self.attributes):
            raise ValueError("two attributes have the same name")
        if not 1 <= len(self.combinations) <= N_COMBINATIONS_MAX:
            raise ValueError(f"a campaign must have 1 to {N_COMBINATIONS_MAX} combinations")
        if len(self.views) > N_VIEWS_MAX:
            raise ValueError(f"a campaign can have at most {N_VIEWS_MAX} views")
        if type(self.epsilon_units) is not int or not 0 < self.epsilon_units <= EPSILON_UNITS_MAX:
            raise ValueError(f"epsilon must be from 1 to {EPSILON_UNITS_MAX} units of 2**-40")
        for combination in self.combinations:
            self._check_cells(combination)
        if {place for view in self.views for place in view} != set(range(len(self.combinations))):
            raise ValueError(
                "every combination must be in a view, and a view may hold only combinations of "
                "the campaign"
            )
        self._check_views()

    def _check_cells(self, combination: Combination) -> None:
        unknown = [name for name in combination.scope if name not in self.by_name]
        if unknown:
            raise ValueError(f"there is no attribute {unknown[0]}")
        if self.n_cells(combination.scope) != combination.channel.n_cells:
            raise ValueError(f"the channel of {combination.scope} has the wrong number of cells")

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
                    raise ValueError("two combinations of a view share an attribute")
                seen |= named[place]
            if not 1 <= self.n_answered <= len(view):
                raise ValueError(
                    f"a view has {len(view)} combinations, but each respondent answers "
                    f"{self.n_answered}"
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
    combinations make views of a single combination each; each respondent answers one of them.

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
        raise ValueError("a respondent must answer at least one combination")
    sizes = {attribute.name: len(attribute.levels) for attribute in attributes}
    scopes = list(dict.fromkeys(scope for view in views for scope in view))
    unknown = {name for scope in scopes for name in scope} - sizes.keys()
    if unknown:
        raise ValueError(f"there is no attribute {min(unknown)}")
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


FORMAT = 1
N_CHARACTERS_MAX = 2**24
PROBABILITY = re.compile(r"([0-9]{1,40})/([0-9]{1,40})")


def campaign_text(campaign: Campaign) -> str:
    """The one JSON text of a campaign."""
    return canonical_json(
        {
            "format": FORMAT,
            "name": campaign.name,
            "attributes": [
                {"name": one.name, "levels": list(one.levels)} for one in campaign.attributes
            ],
            "combinations": [
                {"attributes": list(one.scope), "channel": _channel_json(one.channel)}
                for one in campaign.combinations
            ],
            "views": [list(view) for view in campaign.views],
            "answers": campaign.n_answered,
            "epsilon": campaign.epsilon_units,
        }
    )


def campaign_digest(text: str) -> str:
    """The name of a campaign: the SHA-256 of its text, in hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


def read_campaign(text: str) -> Campaign:
    """The campaign of a text.

    Raises
    ------
    InvalidRequest
        If the text is no campaign, or one that does not hold what it has to.
    """
    if len(text) > N_CHARACTERS_MAX:
        raise InvalidRequest(f"A campaign may have at most {N_CHARACTERS_MAX} characters.")
    try:
        value = json.loads(text)
        fields = _fields(
            value, {"format", "name", "attributes", "combinations", "views", "answers", "epsilon"}
        )
        if fields["format"] != FORMAT:
            raise ValueError(f"the format {fields['format']!r} is unknown")  # noqa: TRY301 - told as every problem below
        campaign = Campaign(
            _text(fields["name"]),
            tuple(_attribute(one) for one in _list(fields["attributes"])),
            _combinations(fields["combinations"], fields["attributes"]),
            tuple(tuple(_whole(place) for place in _list(view)) for view in _list(fields["views"])),
            _whole(fields["epsilon"]),
            _whole(fields["answers"]),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"The text is not a valid campaign: {error}.") from None
    if campaign_text(campaign) != text:
        raise InvalidRequest(
            "The campaign is not in canonical form: sort the keys, use no spaces, and "
            "reduce fractions."
        )
    return campaign


def _channel_json(channel: AnyChannel) -> dict[str, Any]:
    match channel:
        case RandomisedResponse():
            return {
                "kind": "randomised_response",
                "keep": _ratio(channel.keep),
                "weights": list(channel.weights),
            }
        case UnaryEncoding():
            return {"kind": "unary_encoding", "noise": _ratio(channel.noise)}
        case LocalHashing():
            return {
                "kind": "local_hashing",
                "keep": _ratio(channel.keep),
                "buckets": channel.n_buckets,
            }


def _attribute(value: object) -> Attribute:
    fields = _fields(value, {"name", "levels"})
    return Attribute(_text(fields["name"]), tuple(_list(fields["levels"])))


def _combinations(value: object, attributes: object) -> tuple[Combination, ...]:
    sizes = {
        one["name"]: len(one["levels"])
        for one in _list(attributes)  # read before as attributes, so that these fields are there
    }
    found = []
    for one in _list(value):
        fields = _fields(one, {"attributes", "channel"})
        scope = tuple(_text(name) for name in _list(fields["attributes"]))
        n_cells = 1
        for name in scope:
            if name not in sizes:
                raise ValueError(f"there is no attribute {name}")
            n_cells *= sizes[name]
        found.append(Combination(scope, _channel(fields["channel"], n_cells)))
    return tuple(found)


def _channel(value: object, n_cells: int) -> AnyChannel:
    kind = value.get("kind") if isinstance(value, dict) else None
    match kind:
        case "randomised_response":
            fields = _fields(value, {"kind", "keep", "weights"})
            weights = tuple(_whole(weight) for weight in _list(fields["weights"]))
            return RandomisedResponse(weights, _probability(fields["keep"]))
        case "unary_encoding":
            fields = _fields(value, {"kind", "noise"})
            return UnaryEncoding(n_cells, _probability(fields["noise"]))
        case "local_hashing":
            fields = _fields(value, {"kind", "keep", "buckets"})
            buckets = _whole(fields["buckets"])
            return LocalHashing(n_cells, buckets, _probability(fields["keep"]))
    raise ValueError(f"the kind of channel {kind!r} is unknown")


def _ratio(probability: Fraction) -> str:
    return f"{probability.numerator}/{probability.denominator}"


def _probability(value: object) -> Fraction:
    match = PROBABILITY.fullmatch(_text(value))
    if match is None or int(match[2]) == 0:
        raise ValueError(f"{value!r} is not a fraction such as 1/2")
    return Fraction(int(match[1]), int(match[2]))


def _fields(value: object, names: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != names:
        raise ValueError(f"an object must have exactly the fields {', '.join(sorted(names))}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a value must be a list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a value must be a string")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return value
