"""Answers a campaign for a respondent: checks it, randomises the answer, and keeps it.

Meant to run on the respondent's own device: it needs the standard library and `draws.py` alone,
and shares no code with what made the campaign. It computes on its own what an answer would lose,
and refuses before anything is drawn. Draws are by whole numbers from the system's entropy; how
bytes become an answer, and what is refused in which words, is fixed, so that other languages can do
the same: `respondent.mjs` does, for a web page (`tests/local_dp/vectors.json`).

A kept answer is given again and never redrawn, and what all kept answers lose is added up: a
campaign that comes back under another name finds the limit spent.

Whether there is an answer depends only on the names in a row, and never on its levels: a level that
the campaign does not list is answered as well, and the respondent alone is told.

The argument is in `proofs/channels.md` and `proofs/campaigns.md`.
"""

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import ceil, prod
from typing import Any, Final, Protocol, TypeAlias

from local_dp.draws import COIN, Below, Channel, Hashing, Response, Unary

Level: TypeAlias = str | int | bool | None

FORMAT: Final = 1
N_CHARACTERS_MAX = 2**24
INTEGER_MAX = 2**53 - 1  # a larger one is not the same number in every reader of JSON
N_ATTRIBUTES_MAX = 1000  # as all limits here, the limit of a server
N_COMBINATIONS_MAX = N_VIEWS_MAX = 10_000
N_LEVELS_MAX = 2**20
N_CELLS_MAX = 2**16
N_BITS_MAX = 2**12
WEIGHTS_MAX = 2**20
N_BUCKETS_MAX = 251
EPSILON_BITS = 40
GUARD_BITS = 128
RATIO_BITS = 192  # a ratio is rounded up to so many behind the point, so that products stay short
TOO_MANY_CELLS = "a combination has too few or too many cells"
PROBABILITY = re.compile(r"([0-9]{1,40})/([0-9]{1,40})")


class CampaignRefused(Exception):
    """The campaign is not what it has to be, or would lose too much; nothing was drawn."""


class NothingKept(Exception):
    """No answer was given to this campaign."""


class _NotHeld(Exception):
    """What a campaign does not hold, in words."""


@dataclass(frozen=True)
class Kept:
    """An answer that was given: what it lost, in units of 2**-40, its text, and its token.

    A token is empty until the answer is kept: the store has one for it.
    """

    epsilon_units: int
    answer: str
    token: str = ""


@dataclass(frozen=True)
class Given:
    """An answer to be sent under its token, and what the respondent alone is to hear afterwards."""

    answer: str
    token: str
    remarks: tuple[str, ...] = ()


class AnswerStore(Protocol):
    """Where a respondent's answers are kept; see `local_dp.answer_store`."""

    def once(self, campaign: str, make: Callable[[int], Kept], token: str = "") -> Kept:
        """The kept answer to a campaign; if there is none, the one that is made now.

        `make` gets the epsilon of all kept answers together, and may raise. The answer that it
        returns is kept durably before this returns; no other process makes an answer in between.
        `token`, or a token of the store's own, is kept with the answer and stays its token,
        whatever is passed later.
        """


class Entropy:
    """Uniform whole numbers from uniform bytes, by rejection.

    Parameters
    ----------
    read : callable
        So many fresh bytes; those of the operating system by default.
    """

    def __init__(self, read: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._read = read

    def below(self, n: int) -> int:
        """Uniform on ``0 .. n - 1``.

        The smallest whole number of bytes that holds ``n - 1``, first byte first, without the bits
        above its highest; again, if that is `n` or more.
        """
        n_bits = (n - 1).bit_length()
        n_bytes = -(-n_bits // 8)
        while True:
            drawn = int.from_bytes(self._read(n_bytes), "big") & ((1 << n_bits) - 1)
            if drawn < n:
                return drawn


@dataclass(frozen=True)
class Asked:
    """A campaign as a respondent has checked it; make it by `check_campaign`."""

    digest: str
    levels: dict[str, list[Level]]
    scopes: tuple[tuple[str, ...], ...]
    channels: tuple[Channel, ...]
    views: tuple[tuple[int, ...], ...]
    n_answered: int
    epsilon_units: int

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that are asked about, in the order in which combinations have them."""
        return tuple(dict.fromkeys(name for scope in self.scopes for name in scope))

    def unlisted(self, row: Mapping[str, Level]) -> tuple[str, ...]:
        """The attributes whose level in a row is not listed by the campaign."""
        return tuple(
            name
            for name in self.names
            if name in row and _position(self.levels[name], row[name]) is None
        )

    def cells(self, row: Mapping[str, Level], below: Below) -> list[int]:
        """The cell of a row in each combination; a level is looked for once, and not in each.

        A level that is not listed is replaced by a listed one, each equally likely. A refusal would
        tell the server that the row has none of the listed levels: exactly, and for no epsilon.
        """
        for name in self.names:
            if name not in row:
                raise ValueError(f"the row does not have {name}, which the campaign asks about")
        positions = {}
        for name in self.names:
            found = _position(self.levels[name], row[name])
            positions[name] = below(len(self.levels[name])) if found is None else found
        cells = [0] * len(self.scopes)
        for place, scope in enumerate(self.scopes):
            for name in scope:  # the last attribute's level counts in ones
                cells[place] = cells[place] * len(self.levels[name]) + positions[name]
        return cells


class Respondent:
    """One person's answers.

    Parameters
    ----------
    store : AnswerStore
    epsilon_units_max : int
        What all answers in the store may lose together, in units of 2**-40.
    entropy : Entropy, optional
    """

    def __init__(
        self, store: AnswerStore, *, epsilon_units_max: int, entropy: Entropy | None = None
    ) -> None:
        self._store = store
        self._epsilon_units_max = epsilon_units_max
        self._entropy = Entropy() if entropy is None else entropy

    def answer(self, text: str, row: Mapping[str, Level], token: str = "") -> Given:
        """The answer to a campaign, as JSON text; the kept one, if there is one.

        Parameters
        ----------
        text : str
            The campaign, as the server gives it.
        row : mapping
            The true level of every attribute that is asked about. It stays here. A level that the
            campaign does not list is answered by chance, and remarked.
        token : str, optional
            What the answer is sent under, unless it has a token already; by default the store's.

        Raises
        ------
        CampaignRefused
            If the campaign does not hold what it has to, or the limit does not cover it.
        ValueError
            If the row does not have an attribute that is asked about, whatever the others say.
        """
        asked = check_campaign(text)

        def make(spent: int) -> Kept:
            if spent + asked.epsilon_units > self._epsilon_units_max:
                raise CampaignRefused(
                    "the campaign would spend more epsilon than the respondent's limit leaves"
                )
            return Kept(asked.epsilon_units, randomised(asked, row, self._entropy.below))

        return _given(self._store.once(asked.digest, make, token), token, asked.unlisted(row))

    def kept(self, text: str, token: str = "") -> Given:
        """The answer that was given to a campaign, to be sent again; or `NothingKept`."""

        def refuse(_spent: int) -> Kept:
            raise NothingKept

        digest = sha256(text.encode()).hexdigest()
        return _given(self._store.once(digest, refuse, token), token)


def _given(kept: Kept, token: str, unlisted: tuple[str, ...] = ()) -> Given:
    remarks = []
    if unlisted:
        remarks.append(
            f"The campaign does not list the row's level of {', '.join(unlisted)}. One of the "
            "listed levels was drawn at random and answered instead."
        )
    if token and token != kept.token:
        remarks.append(
            "This answer was already sent under another token. It is sent under that token "
            "again, so that it counts once; the new token is not used."
        )
    return Given(kept.answer, kept.token, tuple(remarks))


def randomised(asked: Asked, row: Mapping[str, Level], below: Below) -> str:
    """An answer to a checked campaign: a view and combinations of it by chance, then their cells.

    Draws are, in this order: a level for each that is not listed, in the order of the names; the
    view; which of its combinations, by exchanging places from the first on; then the answer of each
    in the order of their places.
    """
    cells = asked.cells(row, below)
    view = below(len(asked.views))
    places = list(asked.views[view])
    for here in range(asked.n_answered):
        other = here + below(len(places) - here)
        places[here], places[other] = places[other], places[here]
    chosen = sorted(places[: asked.n_answered])
    answers = [[place, f"{asked.channels[place].draw(cells[place], below):x}"] for place in chosen]
    answer = {"campaign": asked.digest, "view": view, "answers": answers}
    return json.dumps(answer, sort_keys=True, separators=(",", ":"))


def check_campaign(text: str) -> Asked:
    """The campaign of a text, with everything checked that privacy rests on.

    Raises
    ------
    CampaignRefused
        For one that could prove a cell, asks about an attribute twice, or loses more than it says.
    """
    try:
        _require(len(text) <= N_CHARACTERS_MAX, "it is too long")
        value = json.loads(text, parse_int=_safe, parse_float=_safe, parse_constant=_safe)
        return _checked(value, sha256(text.encode()).hexdigest())
    except _NotHeld as found:
        reason = str(found)
    except (ValueError, TypeError, KeyError, RecursionError):
        reason = "it does not have the form of a campaign"
    raise CampaignRefused(f"the campaign cannot be answered: {reason}")


def _checked(value: Any, digest: str) -> Asked:
    _require(_whole(value["format"]) == FORMAT, "its format is unknown")
    attributes, combinations = _list(value["attributes"]), _list(value["combinations"])
    views = _list(value["views"])
    _require(len(attributes) <= N_ATTRIBUTES_MAX, "it has too many attributes")
    _require(len(combinations) <= N_COMBINATIONS_MAX, "it has too many combinations")
    _require(0 < len(views) <= N_VIEWS_MAX, "it has no views, or too many")
    levels = {_text(one["name"]): _list(one["levels"]) for one in attributes}
    _require(len(levels) == len(attributes), "two attributes have the same name")
    for name, found in levels.items():
        _require(len(found) <= N_LEVELS_MAX, f"{name} has too many levels")
        told_apart = {(type(level), level) for level in found}
        _require(
            len(told_apart) == len(found) > 1,
            f"{name} has fewer than two levels, or lists one twice",
        )
    scopes = tuple(tuple(_text(name) for name in _list(one["attributes"])) for one in combinations)
    channels = []
    for scope, one in zip(scopes, combinations, strict=True):
        _require(len(set(scope)) == len(scope), "a combination names an attribute twice")
        n_cells = prod(len(levels[name]) for name in scope)
        _require(1 < n_cells <= N_CELLS_MAX, TOO_MANY_CELLS)
        channels.append(_channel(one["channel"], n_cells))
    places = tuple(tuple(_whole(place) for place in _list(view)) for view in views)
    answers, epsilon = _whole(value["answers"]), _whole(value["epsilon"])
    asked = Asked(digest, levels, scopes, tuple(channels), places, answers, epsilon)
    _check_views(asked)
    return asked


def _check_views(asked: Asked) -> None:
    """What is needed of a combination is computed once: a view costs a step for each place."""
    _require(0 < asked.epsilon_units <= 16 << EPSILON_BITS, "its epsilon is out of range")
    limit = _exp_below(asked.epsilon_units) << RATIO_BITS - GUARD_BITS
    bits = {name: 1 << place for place, name in enumerate(asked.levels)}
    named = [sum(bits[name] for name in scope) for scope in asked.scopes]
    ratios = [ceil(channel.ratio * (1 << RATIO_BITS)) for channel in asked.channels]
    for view in asked.views:
        seen = 0
        for place in view:
            _require(0 <= place < len(named), "a view names a combination that does not exist")
            _require(not seen & named[place], "two combinations of a view share an attribute")
            seen |= named[place]
        _require(
            1 <= asked.n_answered <= len(view),
            "a view has fewer combinations than a respondent answers",
        )
        lost = 1 << RATIO_BITS
        for ratio in sorted((ratios[place] for place in view), reverse=True)[: asked.n_answered]:
            lost = -(-lost * ratio >> RATIO_BITS)
            _require(lost <= limit, "an answer would lose more than the declared epsilon")


def _channel(value: Any, n_cells: int) -> Channel:
    if value["kind"] == "randomised_response":
        found = _list(value["weights"])
        _require(len(found) == n_cells, "the number of fake answers is not the number of cells")
        weights = tuple(map(_whole, found))
        _require(
            min(weights) >= 1,
            "a fake answer has weight 0, so that this answer would reveal the true cell",
        )
        _require(sum(weights) <= WEIGHTS_MAX, "the weights of its fake answers are too large")
        return Response(_probability(value["keep"]), weights)
    if value["kind"] == "unary_encoding":
        _require(n_cells <= N_BITS_MAX, TOO_MANY_CELLS)
        noise = _probability(value["noise"])
        _require(noise < Fraction(1, 2), "the noise is not below 1/2")
        _require(COIN % noise.denominator == 0, "the noise is not a multiple of 2**-32")
        return Unary(noise, n_cells)
    _require(value["kind"] == "local_hashing", "a kind of channel is unknown")
    n_buckets = _whole(value["buckets"])
    _require(1 < n_buckets <= N_BUCKETS_MAX, "the number of buckets is out of range")
    n_digits = 1
    while n_buckets**n_digits < n_cells:
        n_digits += 1
    return Hashing(Response(_probability(value["keep"]), (1,) * n_buckets), n_digits)


def _position(levels: list[Level], own: object) -> int | None:
    """Where a level is listed, as the same type; all are compared, so that the time is the same."""
    same = [place for place, one in enumerate(levels) if type(one) is type(own) and one == own]
    return same[0] if same else None


def _probability(value: Any) -> Fraction:
    match = PROBABILITY.fullmatch(_text(value))
    _require(match is not None and int(match[2]) > 0, "a probability is not written as a fraction")
    probability = Fraction(int(match[1]), int(match[2])) if match else Fraction(0)
    _require(0 < probability < 1, "a probability is not between 0 and 1")
    return probability


def _whole(value: Any) -> int:
    _require(type(value) is int, "a number is not an integer")
    return int(value)


def _safe(number: str) -> int:
    found = int(number)  # of a float, or of no number, it is a ValueError
    if abs(found) > INTEGER_MAX:
        raise ValueError("a number is too large")
    return found


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError("a value is not a list")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("a value is not a string")
    return value


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _NotHeld(otherwise)


def _exp_below(units: int) -> int:
    """At most the exponential, times 2**128: a part of its series, each term rounded down."""
    term = total = 1 << GUARD_BITS
    order = 0
    while term:
        order += 1
        term = term * units // (order << EPSILON_BITS)
        total += term
    return total
