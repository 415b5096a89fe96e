"""What a worker's process tells the one that started it, and what it is told itself.

They are sent as pickles through a pipe that nobody else holds. Nothing in them is private: lines of
the greeting, a refusal to start with its text, and what the metrics' page shows.
"""

from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import Metric

from cube.refusals import TacitError
from proxy.config.settings import Settings
from proxy.workers.crew import Seat


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is to do.

    Parameters
    ----------
    settings : Settings
        Of the server, as they were when it started: a worker that begins again later serves by the
        same. Their addresses have actual ports.
    config : Path
        Where they are from, for the greeting.
    seat : Seat
    tells_metrics : bool
        Whether anybody asks for metrics.
    """

    settings: Settings
    config: Path
    seat: Seat
    tells_metrics: bool


@dataclass(frozen=True, slots=True)
class Serves:
    """A worker takes calls from now on; with the lines that greet the server's owner."""

    greeting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CannotServe:
    """A worker could not begin, and why."""

    why: TacitError


@dataclass(frozen=True, slots=True)
class Vitals:
    """How a worker is, once a second.

    Parameters
    ----------
    is_ready : bool
    metrics : tuple of Metric
        None, if nobody asks for them.
    """

    is_ready: bool
    metrics: tuple[Metric, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class End:
    """A worker takes no more calls, finishes those that it has, and ends."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker's process is no more.

    Parameters
    ----------
    exit_code : int
        Negative if a signal ended it.
    """

    exit_code: int


Message = Serves | CannotServe | Vitals | Ended
