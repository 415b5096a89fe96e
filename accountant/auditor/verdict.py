"""The result of an audit, as values. Nothing here finds anything out."""

from dataclasses import dataclass
from fractions import Fraction

from accountant.auditor.columns import ColumnCost


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """What the good entries say of one table.

    Parameters
    ----------
    table : str
    budget : Fraction
        In force at the end, in epsilon.
    spent : Fraction
        What was charged.
    recomputed : Fraction
        What the rows cost the most expensive cell, and with it Gaussian noise.
    exact : bool
        Whether `recomputed` is that cost; otherwise a proved upper bound on it.
    n_measurements, n_raised : int
        How many blocks were measured, and how many of these were measured once more, finer.
    n_pending : int
        Charges that wait for their measurement.
    gaussian : Fraction
        What Gaussian noise costs, of `recomputed`.
    delta : Fraction, optional
        With which probability it promises nothing; None where there is none.
    columns : tuple of ColumnCost, optional
        What each column has cost; None if nobody asked.
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
    delta: Fraction | None = None
    columns: tuple[ColumnCost, ...] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an audit.

    Parameters
    ----------
    n_entries : int
        How many entries were found good, from the first on.
    head : str
        The digest of the last of them.
    at : str
        When it was made; empty if there is none.
    tables : tuple of TableVerdict
        What the good entries add up to.
    problem : str, optional
        "entry 17: " and what is wrong with the first that is.
    notes : tuple of str
        What could not be shown either way.
    warnings : tuple of str
        Why the sums may lack something although nothing is wrong with any entry.
    """

    n_entries: int
    head: str
    at: str
    tables: tuple[TableVerdict, ...]
    problem: str | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
