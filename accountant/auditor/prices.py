"""What a row costs a cell, in whole units of 2**-40 epsilon, by the size of its coefficient there.

    Laplace noise     weight * size
    Gaussian noise    order * precision * size**2, rounded up

Nothing here knows which sizes there are. Proof: proofs/ledger.md, "The most expensive cell".
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Whole: TypeAlias = NDArray[Any]  # int64, or Python's integers where those could overflow


@dataclass(frozen=True, slots=True)
class Price:
    """What a row costs a cell for the size of its share there, in units of 2**-40 epsilon.

    ``numerator * size**power / 2**shift``, rounded up.

    Parameters
    ----------
    numerator : int
    shift : int
    power : int
        1 for Laplace noise, 2 for Gaussian noise.
    """

    numerator: int
    shift: int = 0
    power: int = 1

    def of(self, size: int) -> int:
        """The price of one size."""
        price: int = -(-self.numerator * size**self.power >> self.shift)
        return price

    def of_all(self, sizes: Whole) -> Whole:
        """The prices of many, where they and the sizes fit into the type of `sizes`."""
        if (self.shift, self.power) == (0, 1):
            multiplied: Whole = sizes * np.array(self.numerator, dtype=sizes.dtype)
            return multiplied
        found, places = np.unique(sizes, return_inverse=True)
        prices = np.array([self.of(size) for size in found.tolist()], dtype=sizes.dtype)
        return prices[places].reshape(sizes.shape)

    def of_part(self, whole: int) -> "Price":
        """The price of parts of a size that is at most `whole`: their sum is nowhere below."""
        return Price(self.numerator * whole ** (self.power - 1), self.shift)
