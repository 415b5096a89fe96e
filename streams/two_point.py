"""The law of a bit: what is stored for a user who is present, and for one who is not.

A stored bit is 1 with probability `p1` if its user is present, and `p0 = 1 - p1` if not. Both are
exact: whole numbers of ``2**-64``, which a comparison of one random word draws without error. Of
all pairs that lose at most an epsilon, this one tells the two apart best (proofs/pan_privacy.md,
"Why one half"); no other can be asked for.
"""

from dataclasses import dataclass
from fractions import Fraction

from cube.exponential import EPSILON_MAX, decided, epsilon_units_of
from streams.entropy import GRID


@dataclass(frozen=True, slots=True)
class TwoPoint:
    """The law of the bits of a state.

    Parameters
    ----------
    threshold : int
        A word below it is a 1 for a user who is present. More than half of ``2**64``.

    Examples
    --------
    >>> law = TwoPoint.for_epsilon(Fraction(1, 10))
    >>> round(float(law.p1), 6), law.odds <= Fraction("1.1051709180756477")
    (0.524979, True)
    """

    threshold: int

    def __post_init__(self) -> None:
        if type(self.threshold) is not int:
            raise TypeError("a threshold is a whole number")
        if not GRID // 2 < self.threshold < GRID:
            raise ValueError("who is present is likelier to have a 1, and never certain to")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction) -> "TwoPoint":
        """The largest `p1` on the grid whose odds are at most ``e**epsilon``."""
        if not 0 < epsilon <= EPSILON_MAX:
            raise ValueError(f"an epsilon is above 0 and at most {EPSILON_MAX}")
        return cls(decided(epsilon, lambda power: int(GRID * power / (1 + power))))

    @property
    def p1(self) -> Fraction:
        """The probability of a 1 for a user who is present."""
        return Fraction(self.threshold, GRID)

    @property
    def p0(self) -> Fraction:
        """The probability of a 1 for a user who is not."""
        return 1 - self.p1

    @property
    def separation(self) -> Fraction:
        """By how much presence raises the probability of a 1."""
        return self.p1 - self.p0

    @property
    def odds(self) -> Fraction:
        """The largest ratio of probabilities of a state, of any two streams that differ in a user.

        Its logarithm is what the state alone loses.
        """
        return self.p1 / self.p0

    @property
    def epsilon_units(self) -> int:
        """What the state alone loses, in units of epsilon, rounded up."""
        return epsilon_units_of(self.odds)
