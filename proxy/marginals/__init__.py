"""Noisy tables of counts that may overlap: from the request to their rows."""

from proxy.marginals.make import make_marginals
from proxy.marginals.reconcile import least_negative

__all__ = ["least_negative", "make_marginals"]
