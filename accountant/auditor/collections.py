"""Collections of randomised answers: what each respondent loses, computed from the campaign's text.

The auditor reads the text that respondents read, and computes its epsilon anew: the
ratio of each channel is one of three formulas, a respondent loses at most the product of the
largest ones of a view, and its logarithm is bounded here by whole numbers. No table's budget is
spent. Written apart from the server's own (`local_dp`). Proof: local_dp/proofs/channels.md.
"""

import hashlib
import re
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Final, TypeAlias

from accountant.auditor.fields import (
    Fields,
    Json,
    Wrong,
    check_name,
    fields_of,
    list_of,
    parsed,
    text,
    whole,
)
from accountant.auditor.verdict import CollectionVerdict
from cube.measurement import UNITS_PER_EPSILON

EPSILON_MAX: Final = 16  # beyond it, an answer is no secret
N_TERMS: Final = 160  # of the series of the exponential: up to exp(16), what is left out is nothing
COIN: Final = 2**32  # a bit of unary encoding is drawn below it
N_BUCKETS_MAX: Final = 251
_PROBABILITY: Final = re.compile(r"\d{1,40}/\d{1,40}", re.ASCII)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_OPENED: Final = ("campaign", "respondents_max", "by_invitation", "by")
_CAMPAIGN: Final = (
    *("format", "name", "attributes", "combinations"),
    *("views", "answers", "epsilon"),
)


@dataclass(frozen=True, slots=True)
class CollectionOpened:
    """A collection; what a respondent loses as declared, and as its channels say."""

    name: str
    digest: str
    epsilon_units: int
    recomputed_units: int
    n_respondents_max: int


@dataclass(frozen=True, slots=True)
class CollectionClosed:
    """How many answered a collection that takes no answers any more."""

    name: str
    n_respondents: int


CollectionBody: TypeAlias = CollectionOpened | CollectionClosed


def opened_collection(value: Json) -> CollectionOpened:
    """The content of a `collection_opened`; Wrong if its epsilon is not what it declares."""
    fields = fields_of(value, _OPENED)
    text(fields, "by")
    if type(fields["by_invitation"]) is not bool:
        raise Wrong("by_invitation must be true or false")
    written = text(fields, "campaign")
    campaign = fields_of(parsed(written), _CAMPAIGN)
    whole(campaign, "format", 1)
    units = whole(campaign, "epsilon", 1)
    if units > EPSILON_MAX * UNITS_PER_EPSILON:
        raise Wrong(f"the campaign's epsilon exceeds {EPSILON_MAX}")
    ratio = _largest_ratio(campaign)
    if not _is_at_most_exp(ratio, units):
        raise Wrong(
            f"a respondent may lose more than the {units} units of 2**-40 epsilon that the "
            "campaign declares"
        )
    return CollectionOpened(
        check_name(text(campaign, "name")),
        hashlib.sha256(written.encode()).hexdigest(),
        units,
        _units_of(ratio, units),
        whole(fields, "respondents_max", 1),
    )


def closed_collection(value: Json) -> CollectionClosed:
    """The content of a `collection_closed`; Wrong if it is not a valid one."""
    fields = fields_of(value, ("name", "respondents", "counts_digest", "by"))
    text(fields, "by")
    if not _DIGEST.fullmatch(text(fields, "counts_digest")):
        raise Wrong("a digest is not 64 hexadecimal digits")
    return CollectionClosed(check_name(text(fields, "name")), whole(fields, "respondents"))


@dataclass(slots=True)
class Collections:
    """The collections of one ledger, each with the numbers of its entries."""

    _opened: dict[str, tuple[int, CollectionOpened]] = field(default_factory=dict)
    _closed: dict[str, tuple[int, CollectionClosed]] = field(default_factory=dict)

    def names(self) -> set[str]:
        """Names that no table may have from now on."""
        return set(self._opened)

    def take(self, seq: int, body: CollectionBody) -> None:
        """Apply an entry; Wrong if it cannot follow those before it."""
        if isinstance(body, CollectionOpened):
            digests = {one.digest for _, one in self._opened.values()}
            if body.name in self._opened or body.digest in digests:
                raise Wrong("the collection was opened twice")
            self._opened[body.name] = seq, body
            return
        if body.name not in self._opened:
            raise Wrong("the closed collection was never opened")
        if body.name in self._closed:
            raise Wrong("the collection was closed twice")
        if body.n_respondents > self._opened[body.name][1].n_respondents_max:
            raise Wrong("the collection has more answers than it allows")
        self._closed[body.name] = seq, body

    def verdicts(self, n_good: int) -> tuple[CollectionVerdict, ...]:
        """The verdict on each collection after the first entries."""
        found = []
        for name, (opened_by, opened) in sorted(self._opened.items()):
            closed_by, closed = self._closed.get(name, (n_good + 1, None))
            if opened_by <= n_good:
                found.append(
                    CollectionVerdict(
                        name,
                        opened.digest,
                        Fraction(opened.epsilon_units, UNITS_PER_EPSILON),
                        Fraction(opened.recomputed_units, UNITS_PER_EPSILON),
                        opened.n_respondents_max,
                        closed.n_respondents if closed and closed_by <= n_good else None,
                    )
                )
        return tuple(found)


def _largest_ratio(campaign: Fields) -> Fraction:
    """How many times as likely any answer of a respondent is under one truth as under another."""
    sizes = _sizes(campaign)
    ratios = []
    for one in list_of(campaign, "combinations", dict):
        combination = fields_of(one, ("attributes", "channel"))
        names = list_of(combination, "attributes", str)
        unknown = sorted(set(names) - sizes.keys())
        if unknown or not names or len(set(names)) != len(names):
            raise Wrong("a combination must name distinct attributes of its campaign")
        ratios.append(_ratio(combination["channel"], prod(sizes[name] for name in names)))
    n_answered = whole(campaign, "answers", 1)
    views = list_of(campaign, "views", list)
    if not views:
        raise Wrong("the campaign has no view")
    largest = Fraction(1)
    for view in views:
        if any(type(place) is not int or not 0 <= place < len(ratios) for place in view):
            raise Wrong("a view names a combination that does not exist")
        if len(set(view)) != len(view) or n_answered > len(view):
            raise Wrong("a view has fewer combinations than each respondent answers")
        dearest = sorted((ratios[place] for place in view), reverse=True)[:n_answered]
        largest = max(largest, prod(dearest, start=Fraction(1)))
    return largest


def _sizes(campaign: Fields) -> dict[str, int]:
    """The number of levels of each attribute."""
    found: dict[str, int] = {}
    for one in list_of(campaign, "attributes", dict):
        attribute = fields_of(one, ("name", "levels"))
        name, levels = text(attribute, "name"), attribute["levels"]
        if type(levels) is not list or len(levels) < 2 or name in found:  # noqa: PLR2004 - a choice
            raise Wrong("an attribute has fewer than two levels or is named twice")
        told_apart = {(type(level), level) for level in levels if type(level) in {str, int, bool}}
        if len(told_apart) + (None in levels) != len(levels):
            raise Wrong(f"the levels of {name} are not distinct values")
        found[name] = len(levels)
    return found


def _ratio(channel: Json, n_cells: int) -> Fraction:
    """The ratio of one channel, by the formula for its kind."""
    kind = channel.get("kind") if type(channel) is dict else None
    if kind == "randomised_response":
        fields = fields_of(channel, ("kind", "keep", "weights"))
        weights: list[int] = list_of(fields, "weights", int)
        if len(weights) != n_cells or min(weights) < 1:
            raise Wrong(
                "the weights of fake answers must be positive, one for each cell: an "
                "answer that is never faked reveals the truth"
            )
        keep = _probability(fields, "keep")
        found: Fraction = 1 + keep * sum(weights) / ((1 - keep) * min(weights))
        return found
    if kind == "unary_encoding":
        noise = _probability(fields_of(channel, ("kind", "noise")), "noise")
        if noise >= Fraction(1, 2) or COIN % noise.denominator:
            raise Wrong("the noise of bits must be a multiple of 2**-32 below one half")
        return (1 - noise) / noise
    if kind == "local_hashing":
        fields = fields_of(channel, ("kind", "keep", "buckets"))
        n_buckets, keep = whole(fields, "buckets", 2), _probability(fields, "keep")
        if n_buckets > N_BUCKETS_MAX:
            raise Wrong(f"the campaign has more buckets than respondents accept ({N_BUCKETS_MAX})")
        return 1 + keep * n_buckets / (1 - keep)
    raise Wrong(f"the kind of channel {kind!r} does not exist")


def _probability(fields: Fields, name: str) -> Fraction:
    written = text(fields, name)
    if not _PROBABILITY.fullmatch(written) or written.endswith("/0"):
        raise Wrong(f"{name} is not an exact probability such as 3/7")
    numerator, _, denominator = written.partition("/")
    if int(denominator) == 0 or not 0 < int(numerator) < int(denominator):
        raise Wrong(f"{name} is not between 0 and 1")
    return Fraction(int(numerator), int(denominator))


def _units_of(ratio: Fraction, units_max: int) -> int:
    """The least number of units whose exponential is shown to reach a ratio; `units_max` does."""
    low, high = 0, units_max
    while low < high:
        middle = (low + high) // 2
        if _is_at_most_exp(ratio, middle):
            high = middle
        else:
            low = middle + 1
    return low


def _is_at_most_exp(ratio: Fraction, units: int) -> bool:
    """Whether a ratio is at most ``1 + x + x**2/2 + ...``, a beginning of exp(x)'s series.

    All of its terms are positive, so that the beginning is below the exponential.
    """
    numerator, denominator = 1, 1
    for order in range(N_TERMS, 0, -1):
        scaled = order * UNITS_PER_EPSILON * denominator
        numerator, denominator = scaled + units * numerator, scaled
    return ratio.numerator * denominator <= numerator * ratio.denominator
