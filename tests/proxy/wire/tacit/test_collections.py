"""Collections over a real server: respondents without a credential, others with one."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from local_dp.campaign import campaign_text
from local_dp.respondent import Entropy, check_campaign, randomised
from proxy.collections.service import CollectionService
from proxy.collections.tokens import new_token
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import RespondentsStub, TacitStub
from tests.support.campaigns import survey
from tests.support.engine_fake import CannedEngine
from tests.support.identities import bearer, token_for
from tests.support.serving import serving

TEXT = campaign_text(survey())


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger") as opened:
        yield opened


@pytest.fixture
def channel(ledger: Ledger, tmp_path: Path) -> Iterator[grpc.Channel]:
    authenticator = LedgerAuthenticator(ledger, allow_anonymous=False)
    with (
        closing(CollectionService(ledger, tmp_path / "counts")) as collections,
        serving(CannedEngine(), authenticator=authenticator, collections=collections) as address,
        grpc.insecure_channel(address) as opened,
    ):
        yield opened


def create(
    channel: grpc.Channel, ledger: Ledger, *, by_invitation: bool = False
) -> tacit_pb2.Collection:
    request = tacit_pb2.CreateCollectionRequest(
        campaign=TEXT, respondents_max=1000, by_invitation=by_invitation
    )
    metadata = bearer(token_for(ledger, role=Role.OWNER))
    return TacitStub(channel).CreateCollection(request, metadata=metadata)


def respond(channel: grpc.Channel, token: str, region: int = 1) -> bool:
    """Whether the answer was counted before."""
    stub = RespondentsStub(channel)
    asked = stub.GetAssignment(tacit_pb2.GetAssignmentRequest(name="survey", token=token))
    row: dict[str, str | int | bool | None] = {
        "education": "school",
        "smokes": True,
        "region": region,
    }
    answer = randomised(check_campaign(asked.campaign), row, Entropy().below)
    request = tacit_pb2.SubmitAnswerRequest(name="survey", token=token, answer=answer)
    return bool(stub.SubmitAnswer(request).counted_before)


def test_from_the_opening_to_shares_with_intervals(channel: grpc.Channel, ledger: Ledger) -> None:
    made = create(channel, ledger)
    assert (made.name, made.epsilon, made.closed, made.campaign) == ("survey", 2.0, False, TEXT)
    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(lambda _: respond(channel, new_token()), range(120)))
    token = new_token()
    assert [respond(channel, token), respond(channel, token)] == [False, True]
    metadata = bearer(token_for(ledger, role=Role.OWNER))
    name = tacit_pb2.CloseCollectionRequest(name="survey")
    closed = TacitStub(channel).CloseCollection(name, metadata=metadata)
    assert (closed.closed, closed.respondents) == (True, 121)
    analyst = bearer(token_for(ledger, role=Role.ANALYST))
    asked = tacit_pb2.ReadCollectionRequest(name="survey")
    read = list(TacitStub(channel).ReadCollection(asked, metadata=analyst))
    assert sum(one.answers for one in read) == 121
    for one in read:
        assert sum(one.counts) == one.answers  # each counts at one place of randomised response
        assert len(one.counts) == survey().combinations[one.combination].channel.n_tallies
    request = tacit_pb2.EstimateCollectionRequest(name="survey", attributes=["smokes"])
    found = TacitStub(channel).EstimateCollection(request, metadata=analyst)
    assert (found.respondents, found.confidence) == (121, 0.95)
    assert [json.loads(cell.levels[0]) for cell in found.cells] == [False, True]
    assert sum(cell.share for cell in found.cells) == pytest.approx(1)
    assert all(cell.low < cell.share < cell.high and cell.method for cell in found.cells)


def test_likeliest_shares_say_what_they_are(channel: grpc.Channel, ledger: Ledger) -> None:
    create(channel, ledger)
    for _ in range(40):
        respond(channel, new_token())
    stub, metadata = TacitStub(channel), bearer(token_for(ledger, role=Role.ANALYST))
    names = ["education", "smokes"]
    request = tacit_pb2.EstimateCollectionRequest(name="survey", attributes=names, likeliest=True)
    found = stub.EstimateCollection(request, metadata=metadata)
    assert (found.estimator, found.respondents, found.confidence) == ("likeliest", 40, 0)
    assert not found.HasField("half_width_together")
    assert list(found.basis.combination) == names
    assert (found.basis.likelihood_gap, 0 < found.basis.answers < 40) == (0, True)
    assert sum(cell.share for cell in found.cells) == pytest.approx(1)
    assert min(cell.share for cell in found.cells) >= 0
    assert not any(
        cell.HasField("low") or cell.HasField("high") or cell.method for cell in found.cells
    )
    request.likeliest = False
    unbiased = stub.EstimateCollection(request, metadata=metadata)
    assert (unbiased.estimator, unbiased.HasField("basis")) == ("unbiased", False)
    widest = max(max(cell.high - cell.share, cell.share - cell.low) for cell in unbiased.cells)
    assert unbiased.half_width_together > widest
    assert [cell.levels for cell in unbiased.cells] == [cell.levels for cell in found.cells]
    both = tacit_pb2.EstimateCollectionRequest(
        name="survey", attributes=names, likeliest=True, confidence=0.9
    )
    with pytest.raises(grpc.RpcError) as refused:
        stub.EstimateCollection(both, metadata=metadata)
    assert "no intervals" in str(refused.value.details())


def test_a_respondent_needs_a_token_of_the_collection_and_no_credential(
    channel: grpc.Channel, ledger: Ledger
) -> None:
    create(channel, ledger, by_invitation=True)
    with pytest.raises(grpc.RpcError) as refused:
        respond(channel, new_token())
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND  # as if there were no such one
    metadata = bearer(token_for(ledger, role=Role.OWNER))
    request = tacit_pb2.InviteRespondentsRequest(name="survey", n=2)
    tokens = TacitStub(channel).InviteRespondents(request, metadata=metadata).tokens
    assert [respond(channel, one) for one in tokens] == [False, False]


def test_what_was_not_asked_together_is_refused_with_what_was(
    channel: grpc.Channel, ledger: Ledger
) -> None:
    create(channel, ledger)
    analyst = bearer(token_for(ledger, role=Role.ANALYST))

    def refusal(*attributes: str) -> str:
        request = tacit_pb2.EstimateCollectionRequest(name="survey", attributes=attributes)
        with pytest.raises(grpc.RpcError) as refused:
            TacitStub(channel).EstimateCollection(request, metadata=analyst)
        return str(refused.value.details())

    assert "No one has answered yet" in refusal("smokes")
    respond(channel, new_token())
    of_three = refusal("smokes", "region", "education")
    assert "No one was asked about education, region, smokes together" in of_three
    assert "education, smokes" in of_three  # though one pair alone was answered
    assert "There is no attribute 'income'" in refusal("income")
    assert "No attribute is named" in refusal()


def test_an_answer_is_in_no_log(
    channel: grpc.Channel, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    create(channel, ledger)
    token = new_token()
    respond(channel, token)
    with pytest.raises(grpc.RpcError):
        RespondentsStub(channel).SubmitAnswer(
            tacit_pb2.SubmitAnswerRequest(name="survey", token=token, answer="secret")
        )
    told = "".join(capsys.readouterr())
    assert token not in told
    assert "secret" not in told


def test_a_server_without_collections_says_so() -> None:
    with (
        serving(CannedEngine()) as address,
        grpc.insecure_channel(address) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        respond(channel, new_token())
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_counts_at_too_many_places_are_refused_before_they_are_read(
    channel: grpc.Channel, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(channel, ledger)

    def read(*_: object) -> None:
        raise AssertionError("counts were read")

    monkeypatch.setattr("proxy.collections.status.N_PLACES_MAX", 3)
    monkeypatch.setattr(CollectionService, "estimates", read)
    request = tacit_pb2.ReadCollectionRequest(name="survey")
    with pytest.raises(grpc.RpcError, match="at 3 at most"):
        list(TacitStub(channel).ReadCollection(request, metadata=bearer(token_for(ledger))))
