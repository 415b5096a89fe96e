"""Times by bucket: how precisely the process reports how long anything took.

The time that a measurement takes depends on the data that it counts. Logs and metrics therefore
report a time as the upper edge of its bucket, never the time itself.
"""

from bisect import bisect_left
from typing import Final

# Upper edges in seconds. Up to two seconds each is at most twice the one before, which bounds the
# error of a quantile.
BUCKETS: Final = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075),
    *(0.01, 0.015, 0.02, 0.03, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.75),
    *(1.0, 2.0, 5.0, 10.0, 30.0),
)
BEYOND: Final = 60.0  # what is reported for a time beyond the last edge


def edge_of(seconds: float) -> float:
    """The upper edge of the bucket that a time is in.

    >>> edge_of(0.0123), edge_of(0.015), edge_of(1000)
    (0.015, 0.015, 60.0)
    """
    place = bisect_left(BUCKETS, seconds)
    return BUCKETS[place] if place < len(BUCKETS) else BEYOND
