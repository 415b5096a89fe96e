"""Marginals: noisy tables of counts made consistent with one another, from released values alone.

Needs no data, no budget and no noise: everything passed to it is released already.
"""
