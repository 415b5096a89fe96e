"""The log's allow-list, tried with a canary."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from proxy.monitoring.logs import ALLOWED_FIELDS, WITHHELD, configure_logs, keep_allowed

CANARY = "8675309"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _default_logs_afterwards() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_the_listed_fields() -> None:
    stream = io.StringIO()
    configure_logs(stream)
    fields = {"method": "/tacit.v1.Tacit/Query", "epsilon": 0.25, "analyst": "ann"}
    structlog.get_logger("tacit").info("request", **fields)
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request",
        "level": "info",
        "method": "/tacit.v1.Tacit/Query",
        "epsilon": 0.25,
        "analyst": "ann",
    }


@pytest.mark.parametrize("terminal", [False, True])
def test_the_canary_is_in_no_line_however_it_is_logged(terminal: bool) -> None:
    stream = Terminal() if terminal else io.StringIO()
    configure_logs(stream)
    log = structlog.get_logger("tacit")
    sentence = f"counted {CANARY}"
    log.info(sentence)
    log.info("request", sql=f"SELECT {CANARY}", count=int(CANARY))
    log.info("request", error=ValueError(CANARY), code=[CANARY], epsilon=CANARY)
    log.bind(user=CANARY).warning("request", stack_info=True)
    log.info("request %s", CANARY)
    try:
        int(f"x{CANARY}")
    except ValueError as error:
        log.exception("failed")
        log.warning("failed", exc_info=error)
    assert stream.getvalue().count("\n") >= 7
    assert CANARY not in stream.getvalue()


def test_the_canary_would_have_been_seen() -> None:
    """The same line without the allow-list shows it, so its absence above means something."""
    stream = io.StringIO()
    configure_logs(stream)
    renderer = structlog.processors.JSONRenderer()
    structlog.configure(processors=[renderer])
    structlog.get_logger("tacit").info("request", sql=f"SELECT {CANARY}")
    assert CANARY in stream.getvalue()


def test_a_subclass_of_a_listed_type_is_dropped() -> None:
    class Telling(float):
        def __repr__(self) -> str:
            return CANARY

    assert keep_allowed(None, "info", {"event": "request", "epsilon": Telling(1)}) == {
        "event": "request"
    }


@given(
    st.dictionaries(
        st.one_of(st.text(), st.sampled_from(sorted(ALLOWED_FIELDS))),
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.binary()),
    )
)
def test_only_listed_names_with_listed_types_pass(fields: dict[str, Any]) -> None:
    kept = keep_allowed(None, "info", {**fields, "event": "not a name!"})
    assert kept.pop("event") == WITHHELD
    for name, value in kept.items():
        assert type(value) in ALLOWED_FIELDS[name]
