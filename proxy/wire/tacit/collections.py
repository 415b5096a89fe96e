"""Collections in `tacit.v1`: messages to the service's values and back; decides nothing.

Owners and analysts call `Tacit`, like everybody with a credential. Respondents call `Respondents`,
which has no other methods, and asks for no credential.

Plans of collections and of noise are computed from public numbers alone, so that anybody with a
credential may ask, of a server without collections too. Larger ones are made where nobody else
waits for them: `tacit plan-collection` and `tacit plan-robustness`.
"""


# ruff: noqa: ARG002, N802 - the protocol fixes the names and signatures of its methods

import json

# ruff: noqa: ARG002, N802 - the protocol fixes the names and signatures of its methods
import math
from collections.abc import Iterator, Sequence
from typing import Final

import grpc
import numpy as np

from cube.refusals import InvalidRequest, InvalidTarget, TooLarge
from local_dp.campaign import PAIR, Attribute, Level, campaign_text
from local_dp.channels import Floats
from local_dp.estimates import CollectionEstimates
from proxy.collections import (
    CONFIDENCE,
    LEVEL,
    CollectionService,
    CollectionStatus,
    NoiseKind,
    NoisyTest,
    Plan,
    check_size,
    estimated_shares,
    likeliest_shares,
    made_plan,
)
from proxy.identity import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.synthetic_tables import SyntheticTableService
from proxy.wire.errors import NotOffered

SHARES_CONFIDENCE: Final = 0.95


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
        confidence = request.confidence if request.HasField("confidence") else SHARES_CONFIDENCE
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


N_ATTRIBUTES_MAX: Final = 32
N_COUNTS_MAX: Final = 64  # of a table that is simulated: up to here, a second or two
N_CELLS_MAX: Final = 1024  # larger campaigns are planned where nobody else waits


class PlanningMethods(tacit_pb2_grpc.TacitServicer):
    """The methods of `tacit.v1` for who plans a collection."""

    def PlanCollection(
        self, request: tacit_pb2.PlanCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PlanCollectionReply:
        """The third of three numbers."""
        size = request.size if request.HasField("size") else PAIR
        plan = made_plan(
            _attributes(request.attributes, size),
            epsilon=request.epsilon if request.HasField("epsilon") else None,
            n_respondents=request.respondents if request.HasField("respondents") else None,
            width=request.half_width if request.HasField("half_width") else None,
            confidence=request.confidence if request.HasField("confidence") else CONFIDENCE,
            size=size,
            share=request.share if request.HasField("share") else None,
        )
        return _plan_message(plan)

    def PlanRobustness(
        self, request: tacit_pb2.PlanRobustnessRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PlanRobustnessReply:
        """What noise does to a test of dependence."""
        level = request.level if request.HasField("level") else LEVEL
        n_answers = request.answers if request.HasField("answers") else None
        table = _table(request.counts, request.columns)
        test = NoisyTest.at(table, request.epsilon, level, n_answers)
        if request.HasField("released"):
            kind = _kind(request.released)
            flips = {kind: test.doubt(kind)}
        else:
            flips = {kind: test.flip(kind) for kind in NoiseKind}
        of_given = next(iter(flips.values()))
        return tacit_pb2.PlanRobustnessReply(
            dependent=of_given.is_dependent,
            statistic=of_given.statistic,
            critical=of_given.critical,
            flips=[
                tacit_pb2.NoiseFlip(
                    noise=kind.value,
                    probability=flip.probability,
                    standard_error=flip.standard_error,
                )
                for kind, flip in flips.items()
            ],
        )


def _table(counts: Sequence[float], n_columns: int) -> Floats:
    """Counts as a table, within the limit."""
    if len(counts) > N_COUNTS_MAX:
        raise TooLarge(
            f"A server simulates tables of at most {N_COUNTS_MAX} counts.",
            hint="Do it on your own machine: tacit plan-robustness.",
        )
    if not counts or n_columns < 1 or len(counts) % n_columns:
        raise InvalidRequest(f"{len(counts)} counts are no rows of {n_columns} columns.")
    return np.array(counts, dtype=np.float64).reshape(-1, n_columns)


def _kind(text: str) -> NoiseKind:
    try:
        return NoiseKind(text)
    except ValueError:
        raise InvalidRequest('A release has "central" or "local" noise.') from None


def _attributes(asked: Sequence[tacit_pb2.PlannedAttribute], size: int) -> tuple[Attribute, ...]:
    """Attributes with so many levels, within the limits."""
    if len(asked) > N_ATTRIBUTES_MAX:
        raise TooLarge(
            f"A server plans for at most {N_ATTRIBUTES_MAX} attributes.",
            hint="Plan it on your own machine: tacit plan-collection.",
        )
    most = sorted((one.levels for one in asked), reverse=True)[: max(1, size)]
    if math.prod(max(1, n) for n in most) > N_CELLS_MAX:
        raise TooLarge(
            f"A server plans for combinations of at most {N_CELLS_MAX} cells.",
            hint="Plan it on your own machine: tacit plan-collection.",
        )
    try:
        return tuple(Attribute(one.name, tuple(range(one.levels))) for one in asked)
    except ValueError as error:
        raise InvalidRequest(f"This is no attribute: {error}.") from None


def _plan_message(plan: Plan) -> tacit_pb2.PlanCollectionReply:
    return tacit_pb2.PlanCollectionReply(
        epsilon=float(plan.campaign.epsilon),
        respondents=plan.n_respondents,
        half_width=plan.widest,
        confidence=plan.confidence,
        combinations=[
            tacit_pb2.PlannedCombination(
                attributes=one.scope,
                channel=plan.channel_name(place),
                cells=one.channel.n_cells,
                keep=plan.keep(place),
                answers=plan.n_answers(place),
                half_width=plan.half_width(place),
            )
            for place, one in enumerate(plan.campaign.combinations)
        ],
    )
