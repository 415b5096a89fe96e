"""Collections as a feature: tables, `data_privacy.collections`, calls, their order forgotten.

A collection is a table of the estimates that its answers give at one moment. No answer is read
before a statement asks: anybody may answer, and statements about other tables must not wait for
that. One whose attributes are no columns is not among the tables: other statements go on, and its
own service says what is wrong. Where counts cannot be read, those who ask for them are told so.

The calls of `tacit.v1`: messages to the service's values and back. Owners and analysts call
`Tacit`, like everybody with a credential. Respondents call `Respondents`, which has no other
methods, and asks for no credential. Plans of collections and of noise are computed from public
numbers alone. Larger ones are made on the analyst's own machine: `tacit plan-collection` and
`tacit plan-robustness`.
"""

# ruff: noqa: ARG002, N802 - the protocol fixes the names and signatures of its methods

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import grpc
import numpy as np
import pyarrow as pa

from cube.query import Scope
from cube.refusals import InvalidRequest, InvalidTarget, Refused, TooLarge
from local_dp.campaign import PAIR, Attribute, Campaign, Level, campaign_text
from local_dp.channels import Floats
from local_dp.estimates import CollectionEstimates
from planner.cache import BoundedCache
from proxy.api import LOCAL, Caller
from proxy.collections.plan import (
    CONFIDENCE,
    LEVEL,
    NoiseKind,
    NoisyTest,
    Plan,
    made_plan,
    stacked_tables,
)
from proxy.collections.service import CollectionService, Forgetting
from proxy.collections.status import N_PLACES_MAX, CollectionStatus, check_size, n_places_of
from proxy.collections.table import (
    CollectedForm,
    CollectedTable,
    estimated_shares,
    likeliest_shares,
)
from proxy.feature import Call, Feature, View, calls_of
from proxy.identity import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc

NamesTaken: TypeAlias = Callable[[Caller], Sequence[str]]
SHARES_CONFIDENCE: Final = 0.95


class CollectionCalls:
    """The methods of `tacit.v1` for owners and readers of collections.

    Parameters
    ----------
    names_taken : callable
        The names that a caller's new collection cannot have.
    """

    def __init__(self, collections: CollectionService, names_taken: NamesTaken) -> None:
        self._collections = collections
        self._names_taken = names_taken

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
                synthetic=self._names_taken(caller),
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
        """What the answers say about some attributes."""
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


class RespondentsService(tacit_pb2_grpc.RespondentsServicer):
    """What respondents call."""

    def __init__(self, collections: CollectionService) -> None:
        self._collections = collections

    def GetAssignment(
        self, request: tacit_pb2.GetAssignmentRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.Assignment:
        """What is asked."""
        asked = self._collections.assignment(
            request.name, request.token, is_for_kept=request.for_kept
        )
        return tacit_pb2.Assignment(campaign=asked.campaign, digest=asked.digest)

    def SubmitAnswer(
        self, request: tacit_pb2.SubmitAnswerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.SubmitAnswerReply:
        """Count an answer."""
        is_new = self._collections.submit(request.name, request.token, request.answer)
        return tacit_pb2.SubmitAnswerReply(counted_before=not is_new)


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
N_CELLS_MAX: Final = 1024  # larger campaigns are planned on the analyst's machine


class PlanningCalls:
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
        if request.HasField("given"):
            table = stacked_tables(table, request.given)
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
        raise InvalidRequest(f"{len(counts)} counts do not make whole rows of {n_columns} columns.")
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
        raise InvalidRequest(f"This is not a valid attribute: {error}.") from None


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


VIEW: Final = "collections"
VIEW_SCHEMA: Final = pa.schema(
    [
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("campaign", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("n_respondents", pa.int64(), nullable=False),
        pa.field("n_answered", pa.int64(), nullable=False),
        pa.field("covered", pa.string(), nullable=False),
    ]
)
N_KEPT_MAX: Final = 1024
BYTES_OF_PLACE: Final = 32  # for each place read: stored counts, tallies, and shares
BYTES_KEPT_MAX: Final = BYTES_OF_PLACE * N_PLACES_MAX  # one of the largest, or many


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers to a collection that is served; see `AnswersToCome`."""

    service: CollectionService
    campaign: Campaign
    kept: BoundedCache[str, CollectionEstimates]

    @property
    def n_respondents(self) -> int:
        return self.service.n_respondents(LOCAL, self.campaign.name)

    def covered(self) -> tuple[int, tuple[Scope, ...]]:
        n, n_answers = self.service.answered(LOCAL, self.campaign.name)
        asked = self.campaign.combinations
        return n, tuple(asked[place].scope for place in sorted(n_answers) if n_answers[place])

    def estimates(self) -> CollectionEstimates:
        """What was read before, unless there are more answers since."""
        name = self.campaign.name
        known = self.kept.get(name)
        if known is not None and known.n_respondents == self.n_respondents:
            return known
        found = self.service.estimates(LOCAL, name)
        self.kept.put(name, found, n_bytes=BYTES_OF_PLACE * n_places_of(self.campaign))
        return found


class CollectedTables(Mapping[str, CollectedTable]):
    """The collections of a service, by name, as tables. Thread-safe.

    Names are those of the ledger, also where there is no table of one.
    """

    def __init__(self, service: CollectionService) -> None:
        self._service = service
        self._forms: dict[str, CollectedForm | None] = {}
        self._kept: BoundedCache[str, CollectionEstimates] = BoundedCache(
            n_entries_max=N_KEPT_MAX, n_bytes_max=BYTES_KEPT_MAX
        )

    def __getitem__(self, name: str) -> CollectedTable:
        if name not in self._service.names():  # or anybody's word would be a look into the ledger
            raise KeyError(name)
        try:
            known = self._service.asked(LOCAL, name)
        except Refused:
            raise KeyError(name) from None
        form = self._form(name, known.campaign)
        if form is None:
            raise KeyError(name)
        answers = _Answers(self._service, known.campaign, self._kept)
        return CollectedTable(answers, known.closed is None, form)

    def __iter__(self) -> Iterator[str]:
        return iter(self._service.names())

    def __len__(self) -> int:
        return len(self._service.names())

    def _form(self, name: str, campaign: Campaign) -> CollectedForm | None:
        """The form of a table, made once; a campaign keeps its name for ever."""
        if name not in self._forms:
            try:
                self._forms[name] = CollectedForm(campaign)
            except ValueError:
                self._forms[name] = None
        return self._forms[name]


class Collections(Feature):
    """The collections of a server.

    Parameters
    ----------
    names_taken : callable
        The names of other tables that a caller's new collection cannot have.
    """

    services = (tacit_pb2.DESCRIPTOR.services_by_name["Respondents"].full_name,)

    def __init__(
        self, service: CollectionService, names_taken: NamesTaken = lambda _caller: ()
    ) -> None:
        tables = CollectedTables(service)
        super().__init__(tables, {VIEW: view_of(tables)}, [Forgetting(service)])
        self.service = service
        self._names_taken = names_taken

    def calls(self) -> dict[str, Call]:
        """What owners and readers call, and those who plan a collection."""
        of_service = CollectionCalls(self.service, self._names_taken)
        return calls_of(of_service) | calls_of(PlanningCalls())

    def add_services(self, server: grpc.Server) -> None:
        """Add what respondents call."""
        tacit_pb2_grpc.add_RespondentsServicer_to_server(RespondentsService(self.service), server)

    def close(self) -> None:
        """Write the counts of answers that were not written yet."""
        self.service.close()


def view_of(tables: Mapping[str, CollectedTable]) -> View:
    """The view of some collections, which are found anew each time."""

    def rows(caller: Caller) -> Iterator[dict[str, object]]:
        for name in filter(caller.opens, tables):
            table = tables.get(name)
            if table is not None:
                yield _row(table)

    return View(VIEW_SCHEMA, rows)


def _row(table: CollectedTable) -> dict[str, object]:
    n_respondents, covered = table.covered()
    return {
        "table_name": table.campaign.name,
        "campaign": table.edition,
        "state": "open" if table.is_open else "closed",
        "epsilon": float(table.campaign.epsilon),
        "n_respondents": n_respondents,
        "n_answered": table.campaign.n_answered,
        "covered": ", ".join(f"({', '.join(scope)})" for scope in sorted(covered)),
    }
