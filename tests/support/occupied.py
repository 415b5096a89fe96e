"""The exact law of the number of occupied buckets, one user after another."""

import numpy as np
from numpy.typing import NDArray


def occupied_by_recurrence(n_users: int, n_buckets: int) -> NDArray[np.float64]:
    """One user after another: into an occupied bucket, or into an empty one."""
    law = np.zeros(min(n_users, n_buckets) + 1)
    law[0] = 1
    k = np.arange(law.size)
    for _ in range(n_users):
        stays, moves = law * k / n_buckets, law * (1 - k / n_buckets)
        law = stays
        law[1:] += moves[:-1]
    return law
