"""Refusals as exceptions: every kind that the server has, with the numbers that it sends."""

import pytest

import tacit_client
from cube.refusals import NotCovered, Refused, TargetNotReached
from tacit_client.errors import Detail, OfferedWidth, Position
from tests.support.engine_fake import BrokenEngine
from tests.support.refusals import FREE, kinds_of_refusal, refusal_of
from tests.support.serving import serving


def caught(error: BaseException) -> tacit_client.Error:
    with (
        serving(BrokenEngine(error)) as address,
        tacit_client.connect(address) as connection,
        pytest.raises(tacit_client.Error) as found,
    ):
        connection.sql("SELECT 1 FROM people")
    return found.value


@pytest.mark.parametrize("kind", list(kinds_of_refusal()), ids=lambda kind: kind.__name__)
def test_every_refusal_is_one_here(kind: type[Refused]) -> None:
    refusal = refusal_of(kind)
    found = caught(refusal)
    assert isinstance(found, tacit_client.Refused)
    assert found.code == refusal.code
    assert found.message == refusal.explain()
    assert str(found) == f"[{refusal.code}] {refusal.explain()}"
    assert found.hint == (refusal.hint or None)
    is_about_cost = issubclass(kind, NotCovered | TargetNotReached)
    assert isinstance(found, tacit_client.NotCovered) == is_about_cost


def test_the_numbers_of_a_shortfall_come_along() -> None:
    (kind,) = [one for one in kinds_of_refusal() if one.code == "limit_reached"]
    found = caught(refusal_of(kind))
    assert isinstance(found, tacit_client.NotCovered)
    assert (found.epsilon_needed, found.epsilon_left) == (1.5, 2.0**-40)
    assert (found.free, found.fitting) == (OfferedWidth(2.0, 100.0), OfferedWidth(1.5, 75.0))
    assert (found.detail.table, found.detail.account, found.detail.window) == (
        "people",
        "analyst:ann",
        "day",
    )


def test_a_search_that_ended_short_says_what_it_spent() -> None:
    found = caught(refusal_of(TargetNotReached))
    assert isinstance(found, tacit_client.NotCovered)
    assert found.epsilon_spent == 0.25
    assert found.detail.free_widths == {one.answer: one.half_width for one in FREE}


def test_a_place_in_the_sql_is_told(connection: tacit_client.Connection) -> None:
    with pytest.raises(tacit_client.InvalidStatement) as found:
        connection.sql("SELECT\n nonsense FROM people")
    assert found.value.position == Position(2, 2)


def test_a_crash_is_an_internal_error_and_no_refusal() -> None:
    found = caught(RuntimeError("secret 12345"))
    assert isinstance(found, tacit_client.InternalError)
    assert not isinstance(found, tacit_client.Refused)
    assert "incident" in str(found)
    assert "12345" not in str(found)


def test_a_detail_that_is_not_there_has_no_numbers() -> None:
    assert Detail(free_widths={}).epsilon_needed is None
