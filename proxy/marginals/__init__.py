"""Noisy tables of counts that may overlap: from the request to their rows."""

from proxy.marginals.make import make_marginals
from proxy.marginals.reconcile import solver_note

__all__ = ["make_marginals", "solver_note"]
