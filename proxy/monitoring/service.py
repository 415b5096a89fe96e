"""Starts and stops everything that monitors one running service."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Protocol

from proxy.api.requests import BudgetStatus
from proxy.monitoring.health import LedgerWatch, Readiness, WatchedLedger
from proxy.monitoring.http import application, serving_metrics
from proxy.monitoring.metrics import Metrics

TALLY_SECONDS: Final = 60.0  # between two ledger entries with answer counts


class CountedLedger(WatchedLedger, Protocol):
    """A ledger whose entries are counted."""

    @property
    def position(self) -> tuple[int, str]:
        """How many entries this process has seen, and the digest of the last."""
        ...


class WatchedService(Protocol):
    """The part of a running service that monitoring needs."""

    @property
    def ledger(self) -> CountedLedger:
        """The ledger that the service writes."""
        ...

    def budgets(self) -> Iterable[BudgetStatus]:
        """The budget of every table."""
        ...

    def write_usage(self) -> None:
        """Write the answer counts since the last write to the ledger."""
        ...

    def sign_head(self) -> None:
        """Sign the head of the ledger, if the server has a key for that."""
        ...


@contextmanager
def watching(
    service: WatchedService, metrics: Metrics, readiness: Readiness, metrics_listen: str | None
) -> Iterator[str | None]:
    """Keep ledger, gauges, answer counts and readiness up to date; yields the metrics' address.

    Parameters
    ----------
    service : WatchedService
    metrics : Metrics
    readiness : Readiness
        Set ready at the start and ended at the exit.
    metrics_listen : str, optional
        Where to serve metrics, as ``host:port`` of loopback; None for nowhere.

    Raises
    ------
    ConfigurationInvalid
        If the metrics cannot be served there.
    """
    tally_at = time.monotonic() + TALLY_SECONDS

    def keep_up(is_sound: bool) -> None:
        nonlocal tally_at
        metrics.show_ledger(
            service.budgets(), n_entries=service.ledger.position[0], is_writable=is_sound
        )
        if is_sound and time.monotonic() >= tally_at:
            tally_at = time.monotonic() + TALLY_SECONDS
            service.write_usage()
        service.sign_head()  # last: a failure is logged, and it is tried again in a second

    with ExitStack() as stack:
        stack.enter_context(LedgerWatch(service.ledger, readiness, keep_up))
        if metrics_listen is None:
            yield None
        else:
            pages = application(metrics.registry, lambda: readiness.is_ready)
            yield stack.enter_context(serving_metrics(metrics_listen, pages))
