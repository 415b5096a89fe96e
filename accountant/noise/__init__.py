"""Noise on a lattice, exactly sampled from system entropy: Laplace, Gaussian, and refinements.

Here: the laws of the noise, and how they are sampled. Not here: what they cost (`cost/`), and what
the noise is added to (`gate/`). Nothing takes a seed outside tests.
"""
