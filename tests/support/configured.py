"""A service made from the text of its configuration, asked as its owner asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.bootstrap import Service, build
from proxy.config.settings import load


@contextmanager
def configured(folder: Path, text: str) -> Iterator[Service]:
    """What the text declares, with its data and its ledger in the folder."""
    (folder / "tacit.toml").write_text(text)
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


def answer(service: Service, sql: str, half_width: float | None = None) -> QueryResult:
    target = RequestedTarget(half_width=half_width)
    return service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=target))


def ask(service: Service, sql: str, half_width: float | None = None) -> list[dict[str, Any]]:
    """The rows of an answer."""
    found: list[dict[str, Any]] = answer(service, sql, half_width).data.to_pylist()
    return found


def spent(service: Service) -> Fraction:
    """Of the only budget that there is."""
    (budget,) = service.budgets()
    return budget.spent
