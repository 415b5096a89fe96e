"""What the answers to a collection say: as a table that is asked in SQL, and as cells of a call.

As a table it is free, as each respondent has paid on their own. It answers counts of
respondents, and sums of their levels, over columns that some combination of its campaign has
together (`local_dp.estimates`). Intervals hold for the respondents; each says how it was found.
Columns that no combination has together have no answer, or that of a model where the statement
falls back on one.

Nothing here knows how answers arrive, or when a collection closes.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from accountant.ledger import Payer
from cube.pace import checkpoint
from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import InvalidRequest, InvalidTarget, NotCollected, TooLarge
from cube.runtime import cached_property
from inference import Posterior, coefficient_range
from inference.marginals import UnknownLaw
from local_dp.campaign import Campaign, Level, campaign_digest, campaign_text
from local_dp.columns import CollectedAxes
from local_dp.estimates import (
    AgreeingTable,
    CollectionEstimates,
    IntervalMethod,
    NotCovered,
    likeliest,
)
from planner.lowering import SOURCE_MODEL
from planner.sql import listed
from planner.workload import Fallback, IndependenceQuestion, Wanted
from proxy.api import RANDOMIZED, TableInfo
from proxy.tables import AS_IT_IS, OwnAnswer, OwnAnswers, OwnCells

N_CELLS_MAX = 4096


@dataclass(frozen=True, slots=True)
class EstimatedShare:
    """The share of the respondents in one cell.

    Parameters
    ----------
    levels : tuple of str, int, bool or None
        One of each attribute.
    share, low, high : float
        The unbiased estimate, which may be below 0, and an interval.
    half_width_together : float
        The farther end of a wider interval: those of all cells hold together (Bonferroni).
    method : str
        How the interval was found: binomial, bounded or normal.
    """

    levels: tuple[Level, ...]
    share: float
    low: float
    high: float
    half_width_together: float
    method: str


def estimated_shares(
    estimates: CollectionEstimates, attributes: Sequence[str], confidence: float
) -> list[EstimatedShare]:
    """The cells of some attributes, the last attribute's levels first.

    Raises
    ------
    InvalidRequest
        If the attributes were not asked about together, or have no answers yet.
    InvalidTarget, TooLarge
    """
    scope = shown_scope(estimates, attributes)
    sizes = estimates.campaign.sizes(scope)
    every = 1 - (1 - confidence) / math.prod(sizes)  # of each cell, for all of them together
    if not 0 < confidence <= every < 1:
        raise InvalidTarget("A confidence is above 0 and below 1.", hint="The usual one is 0.95.")
    labels = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
    try:
        answers = estimates.answer(QueryBlock(counting([]), Partition(scope, labels)))
    except NotCovered as error:
        raise uncovered(estimates.campaign, error) from None
    found = []
    for place, answer in zip(np.ndindex(*sizes), answers, strict=True):
        low, high = answer.interval(confidence)
        below, above = answer.interval(every)
        levels = levels_at(estimates, scope, place)
        n = estimates.n_respondents
        method = answer.method.value
        together = max(answer.value - below, above - answer.value) / n
        found.append(EstimatedShare(levels, answer.value / n, low / n, high / n, together, method))
    return found


def shown_scope(estimates: CollectionEstimates, attributes: Sequence[str]) -> Scope:
    """The attributes that are shown, in their order.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    campaign = estimates.campaign
    scope = tuple(sorted(set(attributes)))
    unknown = [name for name in scope if name not in campaign.by_name]
    if not scope or unknown:
        raise InvalidRequest(
            f"There is no attribute {unknown[0][:64]!a}." if unknown else "No attribute is named.",
            hint=f"Attributes of {campaign.name}: {listed(tuple(campaign.by_name))}.",
        )
    if campaign.n_cells(scope) > N_CELLS_MAX:
        raise TooLarge(f"At most {N_CELLS_MAX} cells are shown at once.", hint="Name fewer.")
    return scope


def levels_at(
    estimates: CollectionEstimates, scope: Scope, place: Sequence[int]
) -> tuple[Level, ...]:
    """The level of each attribute at a place of their table."""
    by_name = estimates.campaign.by_name
    return tuple(by_name[name].levels[at] for name, at in zip(scope, place, strict=True))


def uncovered(campaign: Campaign, error: NotCovered) -> InvalidRequest:
    """What is said about attributes that no combination with answers has together."""
    if not error.covered:
        return InvalidRequest("No one has answered yet.")
    if campaign.covering(error.scope):
        return InvalidRequest(
            f"No one has answered about {listed(error.scope)} yet.",
            hint=f"Answered until now: {_together(error.covered)}.",
        )
    asked = _together([one.scope for one in campaign.combinations])
    return InvalidRequest(
        f"No one was asked about {listed(error.scope)} together.", hint=f"Asked about: {asked}."
    )


def _together(scopes: Sequence[Scope]) -> str:
    return "; ".join(", ".join(scope) for scope in scopes)


@dataclass(frozen=True, slots=True)
class LikeliestShares:
    """The likeliest share of the respondents in each cell.

    Parameters
    ----------
    cells : tuple of (levels, share)
        One level of each attribute; shares are not below 0, and add up to 1.
    combination : tuple of str
        The attributes of the combination whose answers they are the likeliest by.
    n_answers : int
        The number of answers to that combination.
    gap : float
        By how much the logarithm of the likelihood may at most be below its greatest.
    """

    cells: tuple[tuple[tuple[Level, ...], float], ...]
    combination: Scope
    n_answers: int
    gap: float


def likeliest_shares(estimates: CollectionEstimates, attributes: Sequence[str]) -> LikeliestShares:
    """The cells of some attributes, the last attribute's levels first.

    Raises
    ------
    InvalidRequest
        If the attributes were not asked about together, or have no answers yet.
    TooLarge, TooSlow
    """
    scope, campaign = shown_scope(estimates, attributes), estimates.campaign
    try:
        holder = estimates.most_precise(scope)
    except NotCovered as error:
        raise uncovered(estimates.campaign, error) from None
    wide = campaign.combinations[holder].scope
    found = likeliest(estimates.estimates[holder])
    summed = tuple(axis for axis, name in enumerate(wide) if name not in scope)
    shares = found.shares.reshape(campaign.sizes(wide)).sum(axis=summed)
    cells = tuple(
        (levels_at(estimates, scope, place), float(shares[place]))
        for place in np.ndindex(*campaign.sizes(scope))
    )
    return LikeliestShares(cells, wide, estimates.estimates[holder].n_answers, found.gap)


N_MODEL_CELLS_MAX: Final = 2**16  # of columns that a model puts together
N_SIMULATED_MAX: Final = 2**25  # the work of all simulated tables: a few seconds, 256 MB
FREE: Final = (
    "{}: {} respondents answered, each at epsilon {:.6g} of their own; to ask is free. Counts are "
    "of these respondents."
)
MODELLED: Final = (
    "Nobody was asked about {} together: the answer comes from the table of greatest entropy "
    "that agrees with the answers there are, and has no interval."
)
TESTED: Final = (
    "{}: tested on the {} answers about {}. The tables that it is compared with are drawn, "
    "randomised and estimated in the same way."
)
METHODS: Final = {
    IntervalMethod.NORMAL: "normal",
    IntervalMethod.BINOMIAL: "exact (binomial)",
    IntervalMethod.BOUNDED: "bounded (Hoeffding), where answers are few",
}


class AnswersToCome(Protocol):
    """The answers to a collection that were not read yet. Thread-safe."""

    @property
    def n_respondents(self) -> int:
        """How many have answered until now."""
        ...

    def covered(self) -> tuple[int, tuple[Scope, ...]]:
        """How many have answered until now, and which combinations have answers."""
        ...

    def estimates(self) -> CollectionEstimates:
        """What they say until now."""
        ...


class CollectedForm:
    """What is public of a collection as a table, and the same whatever is answered.

    Parameters
    ----------
    campaign : Campaign
        What was asked, and how it was randomised.

    Raises
    ------
    ValueError
        If the campaign's attributes are not the columns of a table.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.axes = CollectedAxes.of(campaign)
        asked = [one.scope for one in campaign.combinations]
        epsilon = float(campaign.epsilon)
        comment = (
            f"Randomized answers of respondents, each at epsilon {epsilon:.6g} of their own: free "
            f"to ask. Asked together: {_listed(asked)}."
        )
        schema = self.axes.schema(campaign.name)
        self.info = TableInfo(schema, AS_IT_IS, kind=RANDOMIZED, comment=comment)
        self.edition = campaign_digest(campaign_text(campaign))


class CollectedTable:
    """What the answers to a campaign say at one moment, as a table that answers by itself.

    The moment is when it is first asked. Until then nothing is read but how many answered.

    Parameters
    ----------
    is_open : bool
        Whether more may answer, so that the same question has another answer later.
    form : CollectedForm, optional
        Of the campaign; it is needed where answers are to be read.

    Raises
    ------
    ValueError
        If the campaign's attributes are not the columns of a table.
    """

    def __init__(
        self,
        given: CollectionEstimates | AnswersToCome,
        is_open: bool = False,
        form: CollectedForm | None = None,
    ) -> None:
        if form is None:
            if not isinstance(given, CollectionEstimates):
                raise TypeError("answers that were not read have no form of their own")
            form = CollectedForm(given.campaign)
        self._given = given
        self._form = form
        self.is_open = is_open

    @property
    def campaign(self) -> Campaign:
        """What was asked, and how it was randomised."""
        return self._form.campaign

    @property
    def info(self) -> TableInfo:
        """Its public schema."""
        return self._form.info

    @property
    def edition(self) -> str:
        """The digest of its campaign."""
        return self._form.edition

    @cached_property
    def estimates(self) -> CollectionEstimates:
        """What was answered, read when it is first asked for.

        Raises
        ------
        StoreUnavailable
        """
        given = self._given
        return given if isinstance(given, CollectionEstimates) else given.estimates()

    @property
    def position(self) -> tuple[int, str]:
        """How many answered which campaign: no answer is taken back.

        Until it is asked, that is the present number, so that an answer which is kept with an
        earlier one is made anew.
        """
        is_read = "estimates" in self.__dict__
        n = (self.estimates if is_read else self._given).n_respondents
        return n, self.edition

    def covered(self) -> tuple[int, tuple[Scope, ...]]:
        """How many answered, and the attributes of each combination that has answers.

        Raises
        ------
        StoreUnavailable
        """
        given = self._given
        if isinstance(given, CollectionEstimates):
            return given.n_respondents, given.covered
        return given.covered()

    def foreseen(self, wanted: Sequence[Wanted], fallback: Fallback) -> list[float | None]:
        """The widest half-width of each block, which is that of its answer; None for a model."""
        found = []
        for one in wanted:
            rows = self._answered(one.block, fallback).rows
            widths = [row.half_width(one.target.confidence) for row in rows]
            is_model = any(isinstance(row.law, UnknownLaw) for row in rows)
            found.append(None if is_model else max(widths, default=0.0))
        return found

    def answer(self, wanted: Sequence[Wanted], payer: Payer, fallback: Fallback) -> OwnAnswers:
        """The rows of some blocks.

        Raises
        ------
        NotCollected
            If no combination has all columns of a block; it lists the combinations.
        TooLarge
        """
        del payer  # it is free
        answers, modelled = [], []
        for one in wanted:
            found = self._answered(one.block, fallback)
            answers.append(found)
            if found.source == SOURCE_MODEL:
                modelled.append(MODELLED.format(", ".join(one.block.scope)))
        n, epsilon = self.estimates.n_respondents, float(self.campaign.epsilon)
        notes = (FREE.format(self.campaign.name, n, epsilon), *modelled)
        return OwnAnswers(tuple(answers), tuple(dict.fromkeys(notes)))

    def cells(self, block: QueryBlock, question: IndependenceQuestion) -> OwnCells:
        """The cells of a table of columns that some combination has together.

        Raises
        ------
        NotCollected, TooLarge
        """
        asked = self._axes.of_campaign(block)
        try:
            n_places = self.estimates.n_places(asked.scope)
        except NotCovered as gap:
            raise self._not_collected(gap) from None
        n_cells = math.prod(question.shape)
        if n_places * max(question.n_replicates, n_cells) > N_SIMULATED_MAX:
            fewer = f"ask for {N_SIMULATED_MAX // n_places} replicates at most"
            raise TooLarge(
                f"Answers about {', '.join(asked.scope)} are counted at {n_places} places, "
                f"too many for {question.n_replicates} simulated tables of {n_cells} cells.",
                hint=f"Group the values, as with a CASE, or {fewer}.",
            )
        found = self.estimates.tabled(asked, question.shape)
        note = TESTED.format(self.campaign.name, found.n_answers, ", ".join(asked.scope))
        return OwnCells(found.counts, found, note)

    def agreeing(self, names: Collection[str]) -> list[AgreeingTable]:
        """The tables that respondents were asked for, made to agree, in the columns' order.

        Of the combinations with some of these columns, summed over all others.
        """
        axes = self._axes
        return [
            AgreeingTable(
                one.scope,
                axes.of_columns(one.counts, one.scope),
                axes.of_columns(one.variances, one.scope),
            )
            for one in self.estimates.agreeing(names)
        ]

    @property
    def _axes(self) -> CollectedAxes:
        return self._form.axes

    def _answered(self, block: QueryBlock, fallback: Fallback) -> OwnAnswer:
        checkpoint()
        low, high = self._range(block)
        asked = self._axes.of_campaign(block)
        try:
            found = self.estimates.answer(asked)
        except NotCovered as gap:
            return self._modelled(asked, fallback, gap, (low, high))
        rows = tuple(Posterior(one.value, one.law, low=low, high=high) for one in found)
        # What is known exactly was found in no way.
        intervals = tuple(METHODS[one.method] for one in found if one.law.gaussian)
        return OwnAnswer(rows, RANDOMIZED, intervals)

    def _range(self, block: QueryBlock) -> tuple[float, float]:
        """The public range of a block's answers: each respondent adds one coefficient."""
        low, high = coefficient_range(block.query)
        if block.partition is not None:  # or nothing, where they are in another group
            low, high = min(low, Fraction(0)), max(high, Fraction(0))
        n, constant = self.estimates.n_respondents, block.query.constant
        return float(n * low + constant), float(n * high + constant)

    def _modelled(
        self, block: QueryBlock, fallback: Fallback, gap: NotCovered, ends: tuple[float, float]
    ) -> OwnAnswer:
        known = {one for scope in gap.covered for one in scope}
        if fallback is not Fallback.MODEL or not known.issuperset(gap.scope):
            model = " With OPTIONS(fallback => 'model'), a model answers, without an interval."
            raise self._not_collected(gap, model if known.issuperset(gap.scope) else "")
        if self.campaign.n_cells(gap.scope) > N_MODEL_CELLS_MAX:
            raise TooLarge(
                f"A model of {', '.join(gap.scope)} has more than {N_MODEL_CELLS_MAX} cells.",
                hint="Name fewer columns.",
            )
        values = self.estimates.modelled(block).values.tolist()
        law = UnknownLaw()
        rows = tuple(Posterior(value, law, low=ends[0], high=ends[1]) for value in values)
        return OwnAnswer(rows, SOURCE_MODEL)

    def _not_collected(self, gap: NotCovered, way_out: str = "") -> NotCollected:
        name, covered = self.campaign.name, _listed(gap.covered) or "nothing yet"
        if self.campaign.covering(gap.scope):
            return NotCollected(
                f"No respondent of {name} has answered about {', '.join(gap.scope)} yet.",
                hint=f"Wait for respondents. Answered until now: {covered}.{way_out}",
            )
        return NotCollected(
            f"No respondent of {name} was asked about {', '.join(gap.scope)} together.",
            hint=f"Ask about columns that are together in one of: {covered}.{way_out}",
        )


def _listed(scopes: Sequence[tuple[str, ...]]) -> str:
    return listed(f"({', '.join(scope)})" for scope in sorted(scopes))
