"""Small campaigns of every kind of channel."""

from fractions import Fraction

from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import (
    Attribute,
    Campaign,
    Combination,
    campaign_text,
    designed_views,
    planned_campaign,
)
from local_dp.channels.local_hashing import LocalHashing

EDUCATION = Attribute("education", ("none", "school", "degree"))
SMOKES = Attribute("smokes", (False, True))
REGION = Attribute("region", (1, 2, 3, 4))
PAIRS = designed_views(("education", "region", "smokes"), 2)


def survey(
    name: str = "survey", *, epsilon: Fraction = Fraction(2), n_answered: int = 1
) -> Campaign:
    """Three attributes in pairs, by randomised response."""
    return planned_campaign(
        name,
        (EDUCATION, SMOKES, REGION),
        PAIRS,
        epsilon_units=int(epsilon * UNITS_PER_EPSILON),
        n_answered=n_answered,
    )


def wide(name: str = "wide") -> Campaign:
    """A combination by unary encoding and one by hashing, both answered."""
    levels = tuple(range(200))
    return planned_campaign(
        name,
        (Attribute("a", levels), Attribute("b", tuple(range(2000)))),
        [(("a",), ("b",))],
        epsilon_units=2 * UNITS_PER_EPSILON,
        n_answered=2,
    )


def hashing(name: str = "hashed") -> Campaign:
    """One combination of few cells, by hashing."""
    return Campaign(
        name,
        (REGION,),
        (Combination(("region",), LocalHashing.for_epsilon(4, UNITS_PER_EPSILON)),),
        ((0,),),
        UNITS_PER_EPSILON,
    )


TEXTS = tuple(map(campaign_text, (survey(), survey("both", n_answered=1), wide(), hashing())))
