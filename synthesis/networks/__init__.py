"""Bayesian networks learned from noisy tables: which columns depend on which, and how sure that is.

Post-processing of tables that a source gives: released counts of a few columns, or the rows of a
synthetic table. Nothing is chosen privately here, as PrivBayes does (`synthesis.privbayes`), no
budget is spent, and no rows are drawn.
"""

from synthesis.networks.graph import Arc, Dag
from synthesis.networks.score import mutual_information

__all__ = ["Arc", "Dag", "mutual_information"]
