"""Everything that watches one running service, put together and taken down again."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Protocol

from proxy.api.requests import BudgetStatus
from proxy.monitoring.health import LedgerWatch, Readiness, WatchedLedger
from proxy.monitoring.http import application, serving_http
from proxy.monitoring.metrics import Metrics

TALLY_SECONDS: Final = 60.0  # between two entries that say how much was answered


class CountedLedger(WatchedLedger, Protocol):
    """A ledger whose entries are counted."""

    @property
    def position(self) -> tuple[int, str]:
        """How many entries this process has seen, and the digest of the last."""
        ...


class WatchedService(Protocol):
    """A running service as far as it is watched."""

    @property
    def ledger(self) -> CountedLedger:
        """Where everything is written."""
        ...

    def budgets(self) -> Iterable[BudgetStatus]:
        """The budget of every table."""
        ...

    def write_tallies(self) -> None:
        """Write to the ledger how much was answered since the last time."""
        ...

    def sign_head(self) -> None:
        """Sign how far the ledger has come, if the server has a key for that."""
        ...


@contextmanager
def watching(
    service: WatchedService, metrics: Metrics, readiness: Readiness, metrics_listen: str | None
) -> Iterator[str | None]:
    """Keep ledger, gauges, tallies and readiness up to date; yields where the metrics are.

    Parameters
    ----------
    service : WatchedService
    metrics : Metrics
    readiness : Readiness
        True from here on, and ended with this.
    metrics_listen : str, optional
        Where to serve metrics, as ``host:port`` of loopback; None for nowhere.

    Raises
    ------
    ConfigurationInvalid
        If they cannot be served there.
    """
    tally_at = time.monotonic() + TALLY_SECONDS

    def keep_up(is_sound: bool) -> None:
        nonlocal tally_at
        metrics.show_ledger(
            service.budgets(), n_entries=service.ledger.position[0], is_writable=is_sound
        )
        if is_sound and time.monotonic() >= tally_at:
            tally_at = time.monotonic() + TALLY_SECONDS
            service.write_tallies()
        service.sign_head()  # last: if that fails, it is logged, and tried again in a second

    with ExitStack() as stack:
        stack.enter_context(LedgerWatch(service.ledger, readiness, keep_up))
        if metrics_listen is None:
            yield None
        else:
            pages = application(metrics.registry, lambda: readiness.is_ready)
            yield stack.enter_context(serving_http(metrics_listen, pages))
