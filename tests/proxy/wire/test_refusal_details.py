"""What a program is told of a refusal: complete where there is room, and no more than fits."""

import base64
from dataclasses import replace
from fractions import Fraction

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from grpc_status import rpc_status
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import (
    BudgetExhausted,
    ColumnCost,
    FreeWidth,
    InvalidSql,
    LimitReached,
    Refused,
    TargetNotReached,
    TextPosition,
    UnknownName,
)
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.refusal_details import (
    DETAILS_KEY,
    TRAILERS_BYTES_MAX,
    detail_in,
    packed_detail,
    refusal_detail,
)
from proxy.wire.errors import header_bytes, header_text
from tests.support.engine_fake import COUNT_ALL, BrokenEngine
from tests.support.refusals import FREE, SHORTFALL, kinds_of_refusal, refusal_of
from tests.support.serving import channel_to

NO_UNITS = "0.0000000000009094947017729282379150390625"  # 2**-40, to the last digit


def sent(refusal: Refused) -> tuple[str, bytes | None]:
    """The text that is sent of a refusal, and the trailer beside it."""
    text = header_text(f"[{refusal.code}] {refusal.explain()}")
    status = grpc.StatusCode.INVALID_ARGUMENT
    return text, packed_detail(refusal, status, text, header_bytes(text))


def test_the_numbers_of_a_shortfall_are_exact() -> None:
    detail = refusal_detail(LimitReached(SHORTFALL))
    assert MessageToDict(detail, preserving_proto_field_name=True)["shortfall"] == {
        "table": "people",
        "epsilon_needed": "1.5",
        "epsilon_left": NO_UNITS,
        "account": "analyst:ann",
        "window": "day",
        "free": {"factor": 2.0, "half_width": 100.0},
        "fitting": {"factor": 1.5, "half_width": 75.0},
        "renews_on": "2027-01-01",
    }


def test_a_target_that_was_not_reached_tells_what_was_spent_and_what_is_free() -> None:
    detail = refusal_detail(
        TargetNotReached(
            epsilon_spent=Fraction(1, 4), free=FREE, because=BudgetExhausted(SHORTFALL)
        )
    )
    assert detail.epsilon_spent == "0.25"
    assert [(one.answer, one.half_width) for one in detail.free_widths] == [
        ("a", 12.5),
        ("b", 0.25),
    ]
    assert detail.shortfall.epsilon_needed == "1.5"
    assert not detail.shortfall.HasField("fitting")


def test_what_is_not_covered_tells_what_is_free_of_each_column() -> None:
    columns = (ColumnCost("n", Fraction(1, 4), 12.5), ColumnCost("a", Fraction(1, 12), None))
    detail = refusal_detail(BudgetExhausted(replace(SHORTFALL, columns=columns)))
    assert [(one.answer, one.half_width) for one in detail.free_widths] == [("n", 12.5)]


def test_a_place_in_the_text_is_two_numbers() -> None:
    placed = UnknownName("There is no x.", hint="There is y.", position=TextPosition(3, 14))
    detail = refusal_detail(placed)
    assert (detail.position.line, detail.position.column) == (3, 14)
    assert (detail.message, detail.hint) == ("There is no x.", "There is y.")
    assert not refusal_detail(UnknownName("There is no x.")).HasField("position")


@pytest.mark.parametrize("kind", list(kinds_of_refusal()), ids=lambda kind: kind.__name__)
def test_a_client_of_the_standard_library_reads_it(kind: type[Refused]) -> None:
    refusal = refusal_of(kind)
    with channel_to(BrokenEngine(refusal)) as channel, pytest.raises(grpc.RpcError) as caught:
        TacitStub(channel).Explain(tacit_pb2.ExplainRequest(sql=COUNT_ALL))
    status = rpc_status.from_call(caught.value)  # which compares code and text with the call's own
    assert status is not None
    (packed,) = status.details
    found = tacit_pb2.RefusalDetail()
    assert packed.Unpack(found)
    assert found == refusal_detail(refusal)


def test_an_incident_has_no_details() -> None:
    broken = BrokenEngine(RuntimeError("12345"))
    with channel_to(broken) as channel, pytest.raises(grpc.RpcError) as caught:
        TacitStub(channel).Explain(tacit_pb2.ExplainRequest(sql=COUNT_ALL))
    error: grpc.Call = caught.value  # type: ignore[assignment]  # a client's error is a call too
    assert DETAILS_KEY not in dict(error.trailing_metadata() or ())


@given(
    text=st.text(st.characters(codec="utf-8"), max_size=40),
    repeats=st.integers(1, 400),
    n_free=st.integers(0, 200),
)
def test_text_and_trailer_fit_into_what_clients_take(text: str, repeats: int, n_free: int) -> None:
    long = text * repeats
    for refusal in (
        InvalidSql(long, position=TextPosition(1, 2)),
        TargetNotReached(
            epsilon_spent=Fraction(1),
            free=[FreeWidth(text, 1.0)] * n_free,
            because=BudgetExhausted(SHORTFALL),
        ),
    ):
        said, packed = sent(refusal)
        if packed is None:
            assert header_bytes(said) > TRAILERS_BYTES_MAX / 5
            continue
        assert header_bytes(said) + len(base64.b64encode(packed)) <= TRAILERS_BYTES_MAX
        detail = detail_in({DETAILS_KEY: packed})
        assert detail is not None
        assert detail.code == refusal.code
        assert refusal.message.startswith(detail.message)


def test_sentences_give_way_before_numbers_do() -> None:
    long = InvalidSql("x" * 2000, hint="y" * 500, position=TextPosition(1, 2))
    said, packed = sent(long)
    assert said.endswith("y")
    assert packed is not None
    detail = detail_in({DETAILS_KEY: packed})
    assert detail is not None
    assert (detail.message, detail.hint, detail.position.column) == ("", "", 2)


def test_what_cannot_be_sent_as_text_is_replaced() -> None:
    said, packed = sent(InvalidSql("near \ud800"))
    assert said == "[sql_syntax] near ?"
    assert packed is not None


@pytest.mark.parametrize("trailer", [None, "text", b"\xff\xff", b""])
def test_a_trailer_that_is_none_of_ours_is_no_detail(trailer: str | bytes | None) -> None:
    assert detail_in({} if trailer is None else {DETAILS_KEY: trailer}) is None
