"""`tacit collection show`: shares as they are printed, and what is said of them."""

import json

import pytest

from proxy.cli.collection import shares_notes, shares_table
from proxy.cli.shared.rendering import console
from proxy.protocol import tacit_pb2

CELLS = [
    tacit_pb2.EstimatedCell(
        levels=[json.dumps(level)], share=share, low=share - 0.1, high=share + 0.1, method="normal"
    )
    for level, share in (("no", 1.02), (True, -0.02))
]


def printed(reply: tacit_pb2.EstimateCollectionReply, capsys: pytest.CaptureFixture[str]) -> str:
    console().print(shares_table(["smokes"], reply))
    return capsys.readouterr().out


def test_unbiased_shares_have_intervals_and_a_width_for_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reply = tacit_pb2.EstimateCollectionReply(
        cells=CELLS,
        respondents=300,
        confidence=0.95,
        estimator="unbiased",
        half_width_together=0.1234,
    )
    shown = printed(reply, capsys)
    assert "0.95 interval" in shown
    assert "│ true   │ -0.0200 │ -0.1200 to 0.0800 │ normal" in shown
    assert list(shares_notes(reply)) == [
        "All of them at once are within 0.1234 of the truth (0.95).",
        "300 respondents. Free.",
    ]


@pytest.mark.parametrize("gap", [0.0, 3.25])
def test_likeliest_shares_have_none_and_say_if_they_are_not_reached(
    gap: float, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [tacit_pb2.EstimatedCell(levels=['"no"'], share=1.0)]
    basis = tacit_pb2.LikeliestBasis(
        combination=["region", "smokes"], answers=100, likelihood_gap=gap
    )
    reply = tacit_pb2.EstimateCollectionReply(
        cells=cells, respondents=300, estimator="likeliest", basis=basis
    )
    shown = printed(reply, capsys)
    assert "│ no     │          1.0000 │" in shown
    assert "interval" not in shown
    first, *more = shares_notes(reply)
    assert first == (
        "The likeliest shares by the 100 answers to region, smokes. Small ones are biased, so none "
        "has an interval."
    )
    missed = (
        "The search has not converged: other shares may be likelier, by a factor of at most "
        "exp(3.25)."
    )
    assert more == [*([missed] if gap else []), "300 respondents. Free."]
