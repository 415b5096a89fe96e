"""Noise on a lattice, exactly sampled from system entropy: Laplace, Gaussian, and refinements.

Here: the laws that are drawn from, and how. Not here: what they cost (`cost/`), and what they are
added to (`gate/`). Nothing takes a seed outside tests.
"""
