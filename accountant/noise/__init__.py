"""Noise on a lattice, exactly sampled from system entropy: Laplace, Gaussian, and refinements.

Here: the laws of the noise, and how they are sampled. Not here: what they cost (`cost/`), and what
the noise is added to (`gate/`). Nothing takes a seed outside tests.
"""

from accountant.noise.lattice_noise import (
    LATTICE_BITS_MAX,
    SCALE_IN_STEPS_MIN,
    GaussianNoise,
    LatticeNoise,
    NoiseSource,
    OnLattice,
    SystemNoise,
    may_be_clamped,
    rounded_up,
    sensitivity_of,
)
from accountant.noise.sampling import bernoulli_exp

__all__ = [
    "LATTICE_BITS_MAX",
    "SCALE_IN_STEPS_MIN",
    "GaussianNoise",
    "LatticeNoise",
    "NoiseSource",
    "OnLattice",
    "SystemNoise",
    "bernoulli_exp",
    "may_be_clamped",
    "rounded_up",
    "sensitivity_of",
]
