"""Numbers, lists of names and groups of levels, as the report writes them.

Text out; it is not escaped here.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from proxy.reporting.declared import DeclaredColumn

N_RUNS_MAX: Final = 3  # runs of levels that name a group; the rest is given as a number
SHARE_SHOWN_MIN: Final = 0.001  # a smaller share is not written as 0


def group_name(column: DeclaredColumn, levels: NDArray[np.int64]) -> str:
    """The levels of a group as text; of many, the first few and how many more."""
    ends = np.flatnonzero(np.diff(levels) > 1) + 1 if column.is_ordered else None
    runs = np.split(levels, np.arange(1, levels.size) if ends is None else ends)
    names = [column.levels(int(run[0]), int(run[-1]) + 1) for run in runs[:N_RUNS_MAX]]
    n_more = levels.size - sum(run.size for run in runs[:N_RUNS_MAX])
    return ", ".join(names) + (f" and {n_more} more" if n_more else "")


def joined(names: Sequence[str], n_max: int) -> str:
    """Names in a sentence; of many, the first few and how many more.

    >>> joined(["age"], 2), joined(["age", "sex"], 2), joined(["age", "sex", "job", "pay"], 2)
    ('age', 'age and sex', 'age, sex and 2 more')
    """
    shown, n_more = list(names[:n_max]), len(names) - n_max
    if n_more > 0:
        shown.append(f"{n_more:,} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def number_of(number: int, what: str) -> str:
    """A number of things.

    >>> number_of(1, "pair"), number_of(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def whole(value: float) -> str:
    """A count rounded to whole rows.

    >>> whole(12345.6), whole(-0.2)
    ('12,346', '0')
    """
    return f"{round(value):,}"


def percent(share: float) -> str:
    """A share in percent, never rounded up to 100 %.

    >>> percent(0.95), percent(0.9999), percent(1.0), percent(0.3333)
    ('95.0 %', '99.9 %', '100.0 %', '33.3 %')
    """
    return f"{math.floor(share * 1000 + 1e-9) / 10:.1f} %"


def percent_of(part: float, everything: float) -> str:
    """A part in percent, which is not written as nothing unless it is.

    >>> percent_of(47, 1000), percent_of(0.2, 1000), percent_of(0, 0)
    ('4.7 %', 'under 0.1 %', '0.0 %')
    """
    share = part / everything if everything else 0.0
    return "under 0.1 %" if 0 < share < SHARE_SHOWN_MIN else f"{100 * share:.1f} %"
