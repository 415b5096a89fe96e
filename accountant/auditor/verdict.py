"""The result of an audit, as values. Nothing is computed here."""

from dataclasses import dataclass
from fractions import Fraction

from accountant.auditor.costs import ColumnCost


@dataclass(frozen=True, slots=True)
class Renewal:
    """One table's spending of a budget that renews, at the time of the last valid entry.

    Parameters
    ----------
    renews : str
        The window in which the budget may be spent, and after which it is there anew.
    spent : Fraction
        The epsilon charged in the present window, which counts towards the budget.
    spent_in_year : Fraction
        The epsilon charged in the last twelve months.
    """

    renews: str
    spent: Fraction
    spent_in_year: Fraction


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """The result of an audit for one table, from its valid entries.

    Parameters
    ----------
    table : str
    budget : Fraction
        The budget at the end, in epsilon.
    spent : Fraction
        The epsilon charged in all.
    recomputed : Fraction
        The cost of the rows for the most expensive cell, plus what Gaussian noise and counts of
        units cost beside.
    exact : bool
        Whether `recomputed` is that cost; otherwise it is a proved upper bound.
    n_measurements, n_raised : int
        How many blocks were measured, and how many of these were raised later.
    n_pending : int
        The number of charges without a measurement.
    gaussian : Fraction
        The part of `recomputed` that Gaussian noise costs every cell alike: for statistics, and for
        the terms on which that of rows is accounted. What rows cost a cell is not in it.
    unit_counts : Fraction
        The part of `recomputed` for counts of units, which a unit pays wherever its rows are.
    delta : Fraction, optional
        The probability with which the guarantee may fail; None without Gaussian noise.
    columns : tuple of ColumnCost, optional
        The cost along each column; None unless the audit was asked for it.
    shared_budget : str
        The name of the budget, if tables share it: what is charged to all of them counts.
    n_generations : int
        How many times its data was replaced, and once; `recomputed` is the sum over all of them.
    renewal : Renewal, optional
        The spending of a budget that renews; None for a budget that does not renew.
    """

    table: str
    budget: Fraction
    spent: Fraction
    recomputed: Fraction
    exact: bool
    n_measurements: int
    n_pending: int
    n_raised: int
    gaussian: Fraction = Fraction(0)
    unit_counts: Fraction = Fraction(0)
    delta: Fraction | None = None
    columns: tuple[ColumnCost, ...] | None = None
    shared_budget: str = ""
    n_generations: int = 1
    renewal: Renewal | None = None


@dataclass(frozen=True, slots=True)
class CollectionVerdict:
    """The result of an audit for one collection of randomised answers, from its valid entries.

    Parameters
    ----------
    name : str
    campaign : str
        The digest of the text that respondents read.
    epsilon : Fraction
        What each respondent loses at most, as the campaign declares. No table's budget is spent.
    recomputed : Fraction
        The same as its channels say: never above what is declared.
    n_respondents_max : int
        How many respondents may answer.
    n_respondents : int, optional
        How many answered; None while it is open.
    """

    name: str
    campaign: str
    epsilon: Fraction
    recomputed: Fraction
    n_respondents_max: int
    n_respondents: int | None


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """The result of an audit for one stream, from its valid entries.

    Parameters
    ----------
    stream : str
    epochs : str
        When an epoch ends: ``day``, say; ``never`` if with its release.
    epsilon : Fraction
        What an epoch loses, its state and its release together; computed from their laws.
    spent : Fraction
        The loss of all epochs together, for a user who may be in each.
    budget : Fraction, optional
        The most that they may; None without one.
    n_epochs, n_released : int
        How many were begun, and how many of these released.
    n_predicates : int
        How many predicates are counted. An epoch loses as much for each as for all users.
    """

    stream: str
    epochs: str
    epsilon: Fraction
    spent: Fraction
    budget: Fraction | None
    n_epochs: int
    n_released: int
    n_predicates: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an audit.

    Parameters
    ----------
    n_entries : int
        The number of valid entries, from the first on.
    head : str
        The digest of the last valid entry.
    at : str
        The time of that entry; empty if there is none.
    tables : tuple of TableVerdict
        The results from the valid entries.
    problem : str, optional
        "entry 17: " and the problem of the first entry that has one.
    notes : tuple of str
        Points on which the audit could not decide.
    warnings : tuple of str
        Why the sums may be incomplete although no entry is wrong.
    collections : tuple of CollectionVerdict
        The results about collections, whose epsilon is each respondent's own.
    streams : tuple of StreamVerdict
        The results for streams.
    """

    n_entries: int
    head: str
    at: str
    tables: tuple[TableVerdict, ...]
    problem: str | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    collections: tuple[CollectionVerdict, ...] = ()
    streams: tuple[StreamVerdict, ...] = ()

    @property
    def shared_budgets(self) -> dict[str, tuple[TableVerdict, ...]]:
        """The tables that spend from each shared budget, by its name."""
        names = sorted({one.shared_budget for one in self.tables} - {""})
        return {
            name: tuple(one for one in self.tables if one.shared_budget == name) for name in names
        }
