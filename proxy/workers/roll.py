"""How the workers of a server are, as one: readiness, and metrics that add up.

A server is ready while any of its workers is: connections go to those that listen. What a worker
had counted when it died stays in the sums, as of its last word a second before.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from proxy.monitoring.summed import counted, summed
from proxy.workers.messages import Vitals

SILENCE_SECONDS_MAX: Final = 5.0  # a worker says how it is once a second


class Roll(Collector):
    """The last word of every worker. Thread-safe.

    Parameters
    ----------
    clock : callable, optional
        Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._present: dict[int, tuple[float, Vitals]] = {}
        self._past: list[Metric] = []
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def is_ready(self) -> bool:
        """Whether any worker is ready, and not silent."""
        since = self._clock() - SILENCE_SECONDS_MAX
        with self._lock:
            return any(said.is_ready and at >= since for at, said in self._present.values())

    def note(self, place: int, said: Vitals) -> None:
        """Take in how a worker is."""
        with self._lock:
            self._present[place] = (self._clock(), said)

    def strike(self, place: int) -> None:
        """A worker is gone; what it had counted stays counted."""
        with self._lock:
            _, said = self._present.pop(place, (0.0, Vitals(is_ready=False)))
            self._past = counted([self._past, said.metrics])

    def collect(self) -> Iterable[Metric]:
        """The metrics of the whole server."""
        with self._lock:
            present = [said.metrics for _, said in self._present.values()]
            return summed(present, self._past)
