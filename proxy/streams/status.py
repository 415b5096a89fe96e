"""What may be known of a stream: how it counts, and what its epochs lost. No number of users.

All of it is in the ledger, so it can be said of a stream that was dropped, and by a server that
cannot keep states.
"""

from dataclasses import dataclass
from fractions import Fraction

from accountant.ledger.streams import StreamHistory, StreamOpened
from cube.measurement import UNITS_PER_EPSILON


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """A stream, as whoever opens its name sees it.

    Parameters
    ----------
    name : str
    opened : StreamOpened
    n_begun, n_released : int
        Its epochs.
    epsilon_spent : Fraction
        What all of them lose together.
    is_dropped : bool
    """

    name: str
    opened: StreamOpened
    n_begun: int
    n_released: int
    epsilon_spent: Fraction
    is_dropped: bool

    @classmethod
    def of(cls, name: str, history: StreamHistory) -> "StreamStatus":
        """The status that a history leaves a stream in."""
        return cls(
            name=name,
            opened=history.opened,
            n_begun=len(history.released),
            n_released=sum(map(bool, history.released.values())),
            epsilon_spent=Fraction(history.units_spent, UNITS_PER_EPSILON),
            is_dropped=history.is_dropped,
        )
