"""Plans for collections in `tacit.v1`: messages to plans and back, within what a server computes.

From public numbers alone, so that anybody with a credential may ask, of a server without
collections too. Larger plans are made where nobody else waits for them: `tacit plan-collection`.
"""

# ruff: noqa: ARG002, N802 - the protocol fixes the names and signatures of its methods

import math
from collections.abc import Sequence
from typing import Final

import grpc

from cube.refusals import InvalidRequest, TooLarge
from local_dp.campaign import Attribute
from local_dp.views import PAIR
from proxy.collections.plan import CONFIDENCE, Plan, made_plan
from proxy.protocol import tacit_pb2, tacit_pb2_grpc

N_ATTRIBUTES_MAX: Final = 32
N_CELLS_MAX: Final = 1024  # up to here, the precision of a channel is found in a millisecond


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
        )
        return _message(plan)


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


def _message(plan: Plan) -> tacit_pb2.PlanCollectionReply:
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
