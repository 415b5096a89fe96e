"""The strategies of a table's owner: what may be measured when the history does not suffice."""

from enum import StrEnum


class Strategy(StrEnum):
    """How measurements are chosen; every choice depends on public things alone."""

    AUTO = "auto"
    """The cheapest that answers now, and cells of a scope once they would have paid for it."""

    QUERY = "query"
    """The query itself, at the smallest weight that meets its target together with the history."""

    CELLS = "cells"
    """Every cell of the query's scope, raised to a common weight."""

    DYADIC = "dyadic"
    """A hierarchy of intervals over the longest ordered column of the scope, or else its cells."""

    PAPER = "paper"
    """The query itself, as if there were no history (Xiao & Xiong 2012, algorithm 1)."""
