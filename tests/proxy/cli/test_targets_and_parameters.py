"""What `tacit query` and `tacit explain` pass on: targets, fallbacks and parameters."""

import io
from collections.abc import Iterator

import pytest
import structlog

from proxy.monitoring.logs import configure_logs
from tests.support.commands import Run
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.serving import serving


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedEngine]:
    canned = CannedEngine()
    configure_logs(io.StringIO())
    with serving(canned) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        yield canned
    structlog.reset_defaults()


@pytest.mark.parametrize("command", ["query", "explain"])
def test_a_relative_target_is_passed_on(run: Run, engine: CannedEngine, command: str) -> None:
    assert run(command, COUNT_ALL, "--relative", "0.05", "--at-least", "200").code == 0
    (request,) = engine.requests
    assert (request.target.relative, request.target.at_least) == (0.05, 200)
    assert request.target.half_width is None


def test_a_fallback_is_passed_on(run: Run, engine: CannedEngine) -> None:
    assert run("query", COUNT_ALL, "--fallback", "history").code == 0
    assert run("query", COUNT_ALL).code == 0
    assert [request.target.fallback for request in engine.requests] == ["history", None]


@pytest.mark.parametrize("command", ["query", "explain"])
def test_parameters_are_passed_on_in_their_order(
    run: Run, engine: CannedEngine, command: str
) -> None:
    texts = ("12", "12.5", "true", "null", "2026-01-31", "Oslo", "'12'")
    assert run(command, COUNT_ALL, *(f"--param={text}" for text in texts)).code == 0
    (request,) = engine.requests
    assert [(one.kind.value, one.text) for one in request.parameters] == [
        ("number", "12"),
        ("number", "12.5"),
        ("boolean", "true"),
        ("null", ""),
        ("date", "2026-01-31"),
        ("text", "Oslo"),
        ("text", "12"),
    ]


@pytest.mark.parametrize(
    "options",
    [
        ("--relative", "0.05", "--half-width", "10"),
        ("--relative", "0"),
        ("--at-least", "-1", "--relative", "0.1"),
        ("--fallback", "prayer"),
    ],
)
def test_what_makes_no_target_is_refused_before_it_is_asked(
    run: Run, engine: CannedEngine, options: tuple[str, ...]
) -> None:
    ended = run("query", COUNT_ALL, *options)
    assert ended.code != 0
    assert ended.err.startswith("error [")
    assert not engine.calls["answer"]
