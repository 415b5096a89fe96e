"""The loss of a state and a release, by walking everything that can happen to one user.

What can happen is a word of arrivals and departures before the intruder looks, and another one
after it. The joint law of what is seen then, the bit and the released number, is computed draw by
draw, without a formula for the loss. With numbers that are fractions the result is exact.

The bits of other users only add a number that is independent of all this to what is released; with
`others`, some of them are walked too.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from streams.mechanism import Mechanism

Number = Fraction | float
ARRIVES, LEAVES = "+", "-"


@dataclass(frozen=True)
class OneUser:
    """A user's events: ``("+", "")`` is one arrival before the look, and nothing after it."""

    before: str
    after: str


@dataclass(frozen=True)
class Walked:
    """A way of keeping and releasing a bit, whose loss is walked.

    `weight(y, ones)` is proportional to the probability (or density) of releasing `y` if the
    state has that many ones; `outputs` are the places where a ratio of these can be largest.
    """

    p0: Number
    p1: Number
    weight: Callable[[Number, int], Number]
    outputs: Sequence[Number]

    def bit_after(self, events: str, bit_law: Sequence[Number]) -> tuple[Number, Number]:
        """The law of a bit after events, from its law before them."""
        law = (bit_law[0], bit_law[1])
        for event in events:
            ones = self.p1 if event == ARRIVES else self.p0
            law = (1 - ones, ones)  # whatever it was, it is drawn anew
        return law

    def seen(self, user: OneUser, others: int = 0) -> list[Number]:
        """The law of (bit, other bits, output), up to one factor for all users alike."""
        at_look = self.bit_after(user.before, (1 - self.p0, self.p0))
        found: list[Number] = []
        for bit, *rest in product((0, 1), repeat=1 + others):
            chance = at_look[bit]
            for other in rest:
                chance = chance * (self.p1 if other else 1 - self.p1)
            known: tuple[Number, Number] = (1 - bit, bit)
            last = self.bit_after(user.after, known)
            for y in self.outputs:
                released = sum(last[b] * self.weight(y, b + sum(rest)) for b in (0, 1))
                found.append(chance * released)
        return found

    def seen_twice(self, user: OneUser) -> list[Number]:
        """The law of the bit at two looks, of which nobody told the algorithm."""
        at_look = self.bit_after(user.before, (1 - self.p0, self.p0))
        found: list[Number] = []
        for bit in (0, 1):
            last = self.bit_after(user.after, (1 - bit, bit))
            found += [at_look[bit] * last[b] for b in (0, 1)]
        return found

    def ratio(self, one: OneUser, other: OneUser, others: int = 0) -> Number:
        """The largest ratio of probabilities of what is seen, either way."""
        return ratio_of(self.seen(one, others), self.seen(other, others))


def ratio_of(one: Sequence[Number], other: Sequence[Number]) -> Number:
    """The largest ratio of probabilities of two laws, either way."""
    if any((a == 0) != (b == 0) for a, b in zip(one, other, strict=True)):
        return math.inf
    return max(max(a / b, b / a) for a, b in zip(one, other, strict=True) if a)


def users(events: str = ARRIVES + LEAVES, n_max: int = 2) -> Iterator[OneUser]:
    """Every pair of words of at most `n_max` events each."""
    words = ["".join(w) for n in range(n_max + 1) for w in product(events, repeat=n)]
    return (OneUser(before, after) for before in words for after in words)


def largest_ratio(walked: Walked, events: str = ARRIVES + LEAVES, others: int = 0) -> Number:
    """The largest ratio between any two of a user's possible lives."""
    laws = {tuple(walked.seen(life, others)) for life in users(events)}  # many lives have one law
    return max(ratio_of(one, other) for one in laws for other in laws)


def ratio_to_absence(walked: Walked, events: str = ARRIVES) -> Number:
    """The largest ratio between a user who appears, and the same stream without them."""
    return max(walked.ratio(one, OneUser("", "")) for one in users(events))


def walked_mechanism(mechanism: Mechanism, others: int = 0) -> Walked:
    """What we build: geometric noise on whole numbers, in fractions."""
    alpha = mechanism.output.alpha
    # Beyond the possible numbers of ones a ratio is the same at every output.
    outputs = [Fraction(y) for y in range(-2, 4 + others)]
    return Walked(
        mechanism.state.p0,
        mechanism.state.p1,
        lambda y, ones: alpha ** abs(int(y) - ones),
        outputs,
    )


def walked_laplace(p0: float, p1: float, rate: float) -> Walked:
    """Laplace noise of a rate for each bit of difference: kinks, both tails, and points between."""
    outputs = [-1.0, *(k / 64 for k in range(65)), 2.0]
    return Walked(p0, p1, lambda y, ones: math.exp(-rate * abs(float(y) - ones)), outputs)
