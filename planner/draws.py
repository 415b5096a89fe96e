"""How many draws of a formula's true value its interval needs."""

import math
from typing import Final

N_TAIL_DRAWS: Final = 10  # of a formula's true value, in each tail that an interval cuts off


def n_draws_for(confidence: float) -> int:
    """The fewest draws for a formula's interval at a confidence.

    >>> n_draws_for(0.95), n_draws_for(0.999)
    (400, 20000)
    """
    return math.ceil(round(2 * N_TAIL_DRAWS / (1 - confidence), 6))
