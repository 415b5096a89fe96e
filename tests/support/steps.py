"""A pace that counts steps of the work, where tests time nothing."""

from cube.pace import Deadline
from cube.refusals import TooSlow


class Counted(Deadline):
    """A pace that ends after some number of steps."""

    def __init__(self, n_steps: int) -> None:
        super().__init__(1e9)
        self.n_left = n_steps

    def step(self, seconds: float) -> None:
        self.n_left -= 1
        if self.n_left < 0:
            raise TooSlow("enough")
        super().step(seconds)
