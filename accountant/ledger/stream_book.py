"""Which streams there are, what their epochs lose, and what was released: from a ledger's entries.

An epoch is paid for once and released once, and only after it was begun; its name is that of its
time, so nobody can pay for a day again or in advance. Values only.
Proof: streams/proofs/pan_privacy.md, "What a ledger notes".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from accountant.ledger.stream_entries import (
    EpochBegun,
    EpochReleased,
    StreamBody,
    StreamDropped,
    StreamOpened,
)


@dataclass(frozen=True, slots=True)
class StreamHistory:
    """One stream.

    Parameters
    ----------
    opened : StreamOpened
    released : mapping of str to tuple of int
        Each epoch that was begun, in order, and its noisy numbers of ones; none before its release.
    units_spent : int
        What all of them lose together.
    is_dropped : bool
    """

    opened: StreamOpened
    released: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    units_spent: int = 0
    is_dropped: bool = False

    def after(self, at: str, body: EpochBegun | EpochReleased | StreamDropped) -> "StreamHistory":
        """The history with one more entry; ValueError if it cannot follow."""
        if self.is_dropped:
            raise ValueError("a stream that was dropped")
        match body:
            case EpochBegun():
                return self._begun(at, body)
            case EpochReleased():
                return self._with_release(at, body)
            case StreamDropped():
                return replace(self, is_dropped=True)

    @property
    def can_begin(self) -> bool:
        """Whether the budget leaves another epoch."""
        budget = self.opened.budget_units
        return budget is None or self.units_spent + self.opened.epsilon_units <= budget

    def _begun(self, at: str, body: EpochBegun) -> "StreamHistory":
        if body.epoch != self.opened.epoch_at(at):
            raise ValueError("an epoch begun at a time that is not its own")
        if body.epoch in self.released:
            raise ValueError("an epoch begun twice")
        charged = body.units_after - body.units_before
        if body.units_before != self.units_spent or charged != self.opened.epsilon_units:
            raise ValueError("an epoch that does not cost what an epoch of its stream loses")
        if not self.can_begin:
            raise ValueError("an epoch beyond the budget of its stream")
        released = MappingProxyType({**self.released, body.epoch: ()})
        return replace(self, released=released, units_spent=body.units_after)

    def _with_release(self, at: str, body: EpochReleased) -> "StreamHistory":
        if body.epoch not in self.released:
            raise ValueError("a release of an epoch that was not begun")
        if self.released[body.epoch]:
            raise ValueError("a second release of an epoch")
        if len(body.noisy_ones) != self.opened.n_estimators:
            raise ValueError("a release has a number for everybody and for each predicate")
        is_by_clock = bool(self.opened.epochs.start(at))
        if is_by_clock and body.epoch == self.opened.epoch_at(at):
            raise ValueError("a release of an epoch that is not over")
        released = MappingProxyType({**self.released, body.epoch: body.noisy_ones})
        return replace(self, released=released)


@dataclass(frozen=True, slots=True)
class StreamBook:
    """All streams of a ledger, by their names; those that were dropped are among them."""

    streams: Mapping[str, StreamHistory] = field(default_factory=lambda: MappingProxyType({}))

    def after(self, name: str, at: str, body: StreamBody) -> "StreamBook":
        """The book with one more entry about the stream `name`; ValueError if it cannot follow."""
        known = self.streams.get(name)
        if isinstance(body, StreamOpened):
            if known is not None:
                raise ValueError("a stream opened twice")
            history = StreamHistory(body)
        elif known is None:
            raise ValueError("an entry about a stream that was not opened")
        else:
            history = known.after(at, body)
        return StreamBook(MappingProxyType({**self.streams, name: history}))
