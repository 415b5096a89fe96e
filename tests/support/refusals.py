"""A refusal of every kind, for tests that are not about how one comes about."""

from collections.abc import Iterator
from fractions import Fraction

from cube.refusals import (
    FreeWidth,
    NotCovered,
    OfferedWidth,
    Refused,
    Shortfall,
    TargetNotReached,
    UnsupportedSql,
)
from planner.workload import AskedFirst, RequestedTarget

SHORTFALL = Shortfall(
    table="people",
    epsilon_needed=Fraction(3, 2),
    epsilon_left=Fraction(1, 2**40),
    account="analyst:ann",
    window="day",
    free=OfferedWidth.widened(2.0, {50.0}),
    fitting=OfferedWidth.widened(1.5, {50.0}),
    renews_on="2027-01-01",
)
LEFT_OUT = ("proxy.wire.postgres.",)  # has refusals of its own, which no other wire sees
FREE = (FreeWidth("a", 12.5), FreeWidth("b", 0.25))


def kinds_of_refusal(base: type[Refused] = Refused) -> Iterator[type[Refused]]:
    """Every class that a refusal may be of on every wire, from the root down."""
    if base is not NotCovered:
        yield base
    for narrower in base.__subclasses__():
        if not narrower.__module__.startswith(LEFT_OUT):
            yield from kinds_of_refusal(narrower)


def refusal_of(kind: type[Refused]) -> Refused:
    """One refusal of a kind; of a kind without numbers, with words that say nothing."""
    if issubclass(kind, NotCovered):
        return kind(SHORTFALL)
    if issubclass(kind, TargetNotReached):
        return kind(epsilon_spent=Fraction(1, 4), free=FREE, because=refusal_of(Refused))
    if issubclass(kind, AskedFirst):
        refusal = UnsupportedSql("What is wrong.", hint="What to do.")
        return kind(refusal, sql="SELECT 1", requested=RequestedTarget(), is_list=False)
    return kind("What is wrong.", hint="What to do.")
