"""Plans of collections and of noise in `tacit.v1`: messages and back, and what a server computes.

From public numbers alone, so that anybody with a credential may ask, of a server without
collections too. Larger ones are made where nobody else waits for them: `tacit plan-collection`
and `tacit plan-robustness`.
"""

# ruff: noqa: ARG002, N802 - the protocol fixes the names and signatures of its methods

import math
from collections.abc import Sequence
from typing import Final

import grpc
import numpy as np

from cube.refusals import InvalidRequest, TooLarge
from local_dp.campaign import Attribute
from local_dp.channels.channel import Floats
from local_dp.views import PAIR
from proxy.collections.plan import CONFIDENCE, Plan, made_plan
from proxy.collections.robustness import LEVEL, NoiseKind, NoisyTest
from proxy.protocol import tacit_pb2, tacit_pb2_grpc

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
        return _message(plan)

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
