"""Collections in `tacit.v1`: messages to the service's values and back; decides nothing.

Owners and analysts call `Tacit`, like everybody with a credential. Respondents call `Respondents`,
which has no other methods, and asks for no credential.
"""

# ruff: noqa: ARG002, N802 - the protocol fixes the names and signatures of its methods

import json
from collections.abc import Iterator, Sequence
from typing import Final

import grpc

from cube.refusals import InvalidTarget
from local_dp.campaign import Level
from local_dp.campaign_text import campaign_text
from local_dp.estimates.collection import CollectionEstimates
from proxy.collections.cells import estimated_shares
from proxy.collections.likeliest import likeliest_shares
from proxy.collections.service import CollectionService
from proxy.collections.size import check_size
from proxy.collections.status import CollectionStatus
from proxy.identity.call_context import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.synthetic_tables.service import SyntheticTableService
from proxy.wire.errors import NotOffered

CONFIDENCE: Final = 0.95


class CollectionMethods(tacit_pb2_grpc.TacitServicer):
    """The methods of `tacit.v1` for owners and readers of collections.

    Parameters
    ----------
    collections : CollectionService, optional
        If None, there are none.
    synthetic : SyntheticTableService
        What has names that new collections do not get.
    """

    def __init__(
        self, collections: CollectionService | None, synthetic: SyntheticTableService
    ) -> None:
        self._given_collections = collections
        self._other_names = synthetic

    def CreateCollection(
        self, request: tacit_pb2.CreateCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.Collection:
        """Open a collection."""
        caller = caller_of(context)
        return _message(
            self._collections.create(
                caller,
                request.campaign,
                n_respondents_max=request.respondents_max,
                is_by_invitation=request.by_invitation,
                synthetic=[one.name for one in self._other_names.listed(caller)],
            )
        )

    def InviteRespondents(
        self, request: tacit_pb2.InviteRespondentsRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.InviteRespondentsReply:
        """Tokens to hand out."""
        tokens = self._collections.invitations(caller_of(context), request.name, request.n)
        return tacit_pb2.InviteRespondentsReply(tokens=tokens)

    def ListCollections(
        self, request: tacit_pb2.ListCollectionsRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ListCollectionsReply:
        """The collections that the caller may know of, or one of them."""
        caller = caller_of(context)
        found = (
            (self._collections.status(caller, request.name),)
            if request.name
            else self._collections.listed(caller)
        )
        return tacit_pb2.ListCollectionsReply(collections=map(_message, found))

    def CloseCollection(
        self, request: tacit_pb2.CloseCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.Collection:
        """Take no further answers."""
        return _message(self._collections.close_collection(caller_of(context), request.name))

    def EstimateCollection(
        self, request: tacit_pb2.EstimateCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.EstimateCollectionReply:
        """What the answers say of some attributes."""
        estimates = self._collections.estimates(caller_of(context), request.name)
        if request.likeliest:
            if request.HasField("confidence"):
                raise InvalidTarget(
                    "The likeliest shares have no intervals, so they have no confidence.",
                    hint="Leave the confidence out, or ask for the unbiased shares.",
                )
            return _likeliest_reply(estimates, request.attributes)
        confidence = request.confidence if request.HasField("confidence") else CONFIDENCE
        cells = estimated_shares(estimates, request.attributes, confidence)
        return tacit_pb2.EstimateCollectionReply(
            cells=[
                tacit_pb2.EstimatedCell(
                    levels=_level_texts(one.levels),
                    share=one.share,
                    low=one.low,
                    high=one.high,
                    method=one.method,
                )
                for one in cells
            ],
            respondents=estimates.n_respondents,
            confidence=confidence,
            estimator="unbiased",
            half_width_together=max(one.half_width_together for one in cells),
        )

    def ReadCollection(
        self, request: tacit_pb2.ReadCollectionRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.ReadCollectionReply]:
        """The counts of randomised answers, a combination at a time."""
        caller = caller_of(context)
        check_size(self._collections.status(caller, request.name).campaign)
        estimates = self._collections.estimates(caller, request.name)
        for place, tallies in estimates.tallies.items():
            for one in tallies:
                yield tacit_pb2.ReadCollectionReply(
                    combination=place, answers=one.n_answers, counts=one.counts.tolist()
                )

    @property
    def _collections(self) -> CollectionService:
        return _offered(self._given_collections)


class RespondentsService(tacit_pb2_grpc.RespondentsServicer):
    """What respondents call.

    Parameters
    ----------
    collections : CollectionService, optional
        If None, there are none.
    """

    def __init__(self, collections: CollectionService | None) -> None:
        self._given_collections = collections

    def GetAssignment(
        self, request: tacit_pb2.GetAssignmentRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.Assignment:
        """What is asked."""
        asked = _offered(self._given_collections).assignment(
            request.name, request.token, is_for_kept=request.for_kept
        )
        return tacit_pb2.Assignment(campaign=asked.campaign, digest=asked.digest)

    def SubmitAnswer(
        self, request: tacit_pb2.SubmitAnswerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.SubmitAnswerReply:
        """Count an answer."""
        collections = _offered(self._given_collections)
        is_new = collections.submit(request.name, request.token, request.answer)
        return tacit_pb2.SubmitAnswerReply(counted_before=not is_new)


def _offered(collections: CollectionService | None) -> CollectionService:
    if collections is None:
        raise NotOffered("This server has no collections.")
    return collections


def _likeliest_reply(
    estimates: CollectionEstimates, attributes: Sequence[str]
) -> tacit_pb2.EstimateCollectionReply:
    found = likeliest_shares(estimates, attributes)
    return tacit_pb2.EstimateCollectionReply(
        cells=[
            tacit_pb2.EstimatedCell(levels=_level_texts(levels), share=share)
            for levels, share in found.cells
        ],
        respondents=estimates.n_respondents,
        estimator="likeliest",
        basis=tacit_pb2.LikeliestBasis(
            combination=found.combination, answers=found.n_answers, likelihood_gap=found.gap
        ),
    )


def _level_texts(levels: Sequence[Level]) -> list[str]:
    return [json.dumps(level, ensure_ascii=False) for level in levels]


def _message(status: CollectionStatus) -> tacit_pb2.Collection:
    return tacit_pb2.Collection(
        name=status.name,
        digest=status.digest,
        campaign=campaign_text(status.campaign),
        epsilon=float(status.campaign.epsilon),
        respondents=status.n_respondents,
        respondents_max=status.n_respondents_max,
        by_invitation=status.is_by_invitation,
        closed=status.is_closed,
        opened_by=status.opened_by,
    )
