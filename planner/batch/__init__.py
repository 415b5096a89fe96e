"""Weights for many statements together, by convex optimisation. Needs cvxpy (extra `plan`)."""
