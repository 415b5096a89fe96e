"""The law of Laplace errors and one Gaussian, added: distribution, quantiles, half-widths.

By contour integration with a proved bound; by convolution and by simulation, as checks of each
other. Not here: which noises a query's error consists of (`blue/` finds the coefficients).
"""

from inference.noise_law.laplace_sum import standard_deviation
from inference.noise_law.law import (
    AskedLaw,
    NoiseLaw,
    law_by,
    law_of_noise,
    law_of_noises,
)
from inference.noise_law.paper_methods import masses_on_grid

__all__ = [
    "AskedLaw",
    "NoiseLaw",
    "law_by",
    "law_of_noise",
    "law_of_noises",
    "masses_on_grid",
    "standard_deviation",
]
