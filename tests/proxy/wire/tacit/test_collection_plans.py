"""Plans over a real server: the figures of the specification, and what a server won't compute."""

from collections.abc import Callable, Iterator, Sequence

import grpc
import numpy as np
import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.opening import open_ledger
from proxy.collections.plan import NoiseKind, NoisyTest
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.engine_fake import CannedEngine
from tests.support.every_call import Metadata
from tests.support.identities import bearer, token_for
from tests.support.serving import serving

Plan = Callable[..., tacit_pb2.PlanCollectionReply]
Robustness = Callable[..., tacit_pb2.PlanRobustnessReply]
Served = tuple[TacitStub, Metadata]
COUNTS = (510, 490, 490, 510)  # 2,000 records, phi = .02
YES_NO = (("smokes", 2), ("drinks", 2))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Asked by an auditor, who may ask least, of a server without collections."""
    with open_ledger(tmp_path_factory.mktemp("plans") / "ledger") as ledger:
        authenticator = LedgerAuthenticator(ledger, allow_anonymous=False)
        metadata = bearer(token_for(ledger, role=Role.AUDITOR))
        with (
            serving(CannedEngine(), authenticator=authenticator) as address,
            grpc.insecure_channel(address) as channel,
        ):
            yield TacitStub(channel), metadata


@pytest.fixture
def plan(served: Served) -> Plan:
    stub, metadata = served

    def asked(
        attributes: tuple[tuple[str, int], ...] = YES_NO, **numbers: object
    ) -> tacit_pb2.PlanCollectionReply:
        named = [tacit_pb2.PlannedAttribute(name=name, levels=n) for name, n in attributes]
        request = tacit_pb2.PlanCollectionRequest(attributes=named, **numbers)  # type: ignore[arg-type]
        return stub.PlanCollection(request, metadata=metadata)

    return asked


@pytest.fixture
def robustness(served: Served) -> Robustness:
    stub, metadata = served

    def asked(
        counts: Sequence[float] = COUNTS, columns: int = 2, epsilon: str = "0.05", **more: object
    ) -> tacit_pb2.PlanRobustnessReply:
        request = tacit_pb2.PlanRobustnessRequest(
            counts=counts,
            columns=columns,
            epsilon=epsilon,
            **more,  # type: ignore[arg-type]
        )
        return stub.PlanRobustness(request, metadata=metadata)

    return asked


def test_two_numbers_determine_the_third(plan: Plan) -> None:
    """Four cells at epsilon .25: p is .0663, and 409,663 respondents are needed for .02.

    That is for shares of 1/4. Whatever the shares are, ``z**2 r (1 - r) / (p**2 .02**2)`` are, with
    the rate nearest to one half: ``r = p + (1 - p) / 4``.
    """
    largest = plan(epsilon="0.25", half_width=0.02)
    assert largest.respondents == pytest.approx(458_582, rel=1e-5)
    by_width = plan(epsilon="0.25", half_width=0.02, share=0.25)
    assert plan(epsilon="0.25", respondents=largest.respondents, share=0.25).half_width < 0.0190
    (pair,) = by_width.combinations
    assert (list(pair.attributes), pair.channel, pair.cells) == (
        ["drinks", "smokes"],
        "randomised response",
        4,
    )
    assert pair.keep == pytest.approx(0.0663, abs=5e-5)
    assert by_width.respondents == pair.answers == pytest.approx(409_663, rel=2e-3)
    assert by_width.half_width == pair.half_width == pytest.approx(0.02, rel=1e-5)
    assert (by_width.epsilon, by_width.confidence) == (0.25, 0.95)
    assert plan(epsilon="0.25", respondents=by_width.respondents, share=0.25) == by_width
    by_both = plan(respondents=by_width.respondents, half_width=0.02, share=0.25)
    assert by_both.epsilon == pytest.approx(0.25, rel=1e-4)
    assert by_both.half_width <= 0.02


def test_combinations_share_the_respondents(plan: Plan) -> None:
    asked = (("a", 2), ("b", 3), ("c", 4), ("d", 250))
    found = plan(asked, epsilon="1", respondents=6000)
    assert [one.answers for one in found.combinations] == [1000] * 6
    assert found.half_width == max(one.half_width for one in found.combinations)
    large = [one for one in found.combinations if "d" in one.attributes]
    assert {(one.channel, one.keep) for one in large} == {("unary encoding", 0.5)}
    alone = plan(asked, size=1, epsilon="1", respondents=6000)
    assert [list(one.attributes) for one in alone.combinations] == [["a"], ["b"], ["c"], ["d"]]
    wider = plan(asked, epsilon="1", respondents=6000, confidence=0.99)
    assert wider.half_width > found.half_width
    needed = plan(asked, respondents=6000, half_width=found.half_width)
    assert needed.epsilon == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize(
    ("attributes", "numbers", "said"),
    [
        (YES_NO, {}, "Give two of"),
        (YES_NO, {"epsilon": "1"}, "Give two of"),
        (YES_NO, {"epsilon": "1", "respondents": 9, "half_width": 0.1}, "Give two of"),
        (YES_NO, {"epsilon": "17", "respondents": 9}, "at most 16"),
        (YES_NO, {"epsilon": "-1", "respondents": 9}, "decimal number"),
        (YES_NO, {"epsilon": "1e-9", "respondents": 9}, "at least 0.0001"),
        (YES_NO, {"epsilon": "1", "respondents": 9, "size": -1}, "at least one attribute, not -1"),
        (YES_NO, {"epsilon": "1", "respondents": 9, "size": 0}, "at least one attribute, not 0"),
        (YES_NO, {"epsilon": "1", "respondents": 0}, "1 to 1000"),
        (YES_NO, {"epsilon": "1", "respondents": -5}, "1 to 1000"),
        (YES_NO, {"epsilon": "0.001", "half_width": 1e-9}, "1 to 1000"),
        (YES_NO, {"epsilon": "1", "half_width": float("nan")}, "above 0 and below 1"),
        (YES_NO, {"epsilon": "1", "respondents": 9, "confidence": 1.0}, "confidence"),
        (YES_NO, {"respondents": 2, "half_width": 0.01}, "No epsilon gives"),
        (YES_NO, {"epsilon": "1", "respondents": 9, "share": 1.5}, "from 0 to 1"),
        (YES_NO, {"epsilon": "1", "respondents": 9, "share": float("nan")}, "from 0 to 1"),
        ((), {"epsilon": "1", "respondents": 9}, "must have 1 to"),
        ((("a", 2), ("a", 3)), {"epsilon": "1", "respondents": 9}, "same name"),
        ((("a", 1), ("b", 3)), {"epsilon": "1", "respondents": 9}, "must have 2 to"),
        ((("a", -1), ("b", 3)), {"epsilon": "1", "respondents": 9}, "must have 2 to"),
        ((("", 2), ("b", 3)), {"epsilon": "1", "respondents": 9}, "printable"),
        ((("a", 2), ("b", 600)), {"epsilon": "1", "respondents": 9}, "at most 1024 cells"),
        ((("a", 2**62),), {"epsilon": "1", "respondents": 9}, "at most 1024 cells"),
        (
            tuple((f"a{n}", 2) for n in range(33)),
            {"epsilon": "1", "respondents": 9},
            "at most 32 attributes",
        ),
    ],
)
def test_what_makes_no_plan_is_refused(
    plan: Plan,
    attributes: tuple[tuple[str, int], ...],
    numbers: dict[str, object],
    said: str,
) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        plan(attributes, **numbers)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert said in str(refused.value.details())


def test_noise_is_asked_for_before_a_release(robustness: Robustness) -> None:
    """Noise of scale 20 flips .198 of the specification's tables: 4 errors of both simulations."""
    found = robustness()
    assert [one.noise for one in found.flips] == ["central", "local"]
    central, local = found.flips
    assert central.probability == pytest.approx(0.198, abs=0.016)
    assert central.standard_error == pytest.approx(0.0028, abs=1e-4)
    assert local.probability > central.probability
    assert (found.dependent, round(found.statistic, 1), round(found.critical, 3)) == (
        False,
        0.8,
        3.841,
    )
    assert robustness() == found
    assert robustness(level=0.5).dependent
    wide = robustness((10, 0, 0, 10, 10, 0), 3)
    assert wide.critical == pytest.approx(5.991, abs=1e-3)  # two degrees of freedom


def test_noise_is_asked_for_after_a_release(robustness: Robustness) -> None:
    for kind in NoiseKind:
        found = robustness(released=kind.value)
        (flip,) = found.flips
        doubt = NoisyTest.at(np.array(COUNTS, dtype=float).reshape(2, 2), "0.05").doubt(kind)
        assert flip.noise == kind
        assert (flip.probability, flip.standard_error) == (
            doubt.probability,
            doubt.standard_error,
        )
    assert robustness((-1.5, 9, 8, 2), released="central").flips
    (few,) = robustness(released="local", answers=100).flips
    table = np.array(COUNTS, dtype=float).reshape(2, 2)
    doubt = NoisyTest.at(table, "0.05", n_answers=100).doubt(NoiseKind.LOCAL)
    assert few.probability == doubt.probability


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"counts": ()}, "0 counts"),
        ({"columns": 3}, "4 counts do not make whole rows of 3 columns"),
        ({"answers": 0}, "0 of the table's"),
        ({"answers": 10**9}, "cannot have answered"),
        ({"columns": 0}, "4 counts"),
        ({"columns": -2}, "4 counts"),
        ({"columns": 2**62}, "4 counts"),
        ({"columns": 4}, "two rows"),
        ({"counts": (1,) * 66}, "at most 64 counts"),
        ({"counts": (1, 1, 1, -1)}, "below 0"),
        ({"counts": (1, 1, 1, float("nan"))}, "Counts are at most"),
        ({"counts": (0, 0, 0, 0)}, "more than 0 together"),
        ({"epsilon": ""}, "decimal number"),
        ({"epsilon": "16.1"}, "at most 16"),
        ({"epsilon": "1e-9"}, "at least 0.0001"),
        ({"epsilon": "1e-9", "released": "local"}, "at least 0.0001"),
        ({"counts": (0.02, 0.48, 0.25, 0.25)}, "not whole"),
        ({"counts": (510.5, 490, 490, 510)}, "not whole"),
        ({"counts": (0.02, 0.48, 0.25, 0.25), "released": "local"}, "at least 2"),
        ({"level": 0.0}, "level"),
        ({"released": "both"}, '"central" or "local"'),
    ],
)
def test_what_cannot_be_tested_is_refused(
    robustness: Robustness, asked: dict[str, object], said: str
) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        robustness(**asked)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert said in str(refused.value.details())


def test_given_values_have_a_table_each(robustness: Robustness) -> None:
    """By hand: two tables of the same counts have twice the statistic, and two degrees."""
    one, two = robustness(), robustness([*COUNTS, *COUNTS], given=2)
    assert two.statistic == pytest.approx(2 * one.statistic)
    assert (one.critical, two.critical) == pytest.approx((3.8415, 5.9915), abs=1e-4)
    for given in (0, -1, 3):
        with pytest.raises(grpc.RpcError, match="tables of one size"):
            robustness(given=given)
