"""Answers questions AS OF a day of an earlier generation, from its measurements alone.

Its data is gone, so nothing is charged, read or measured; answers from its history are
post-processing of released values. Proof: proofs/generations.md, "What is known of the new rows".
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from accountant.cost import Price
from accountant.gate.asked import states_in
from accountant.gate.gate import Gate
from accountant.gate.pricing import Pricing
from accountant.ledger import Payer
from accountant.ledger.history import BindingLimit, Budget, TableHistory
from accountant.noise import SystemNoise
from cube.axis import Axis, CategoryAxis
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.refusals import GenerationOver, Shortfall, SourceUnavailable
from cube.schema import Schema
from cube.statistic import Asked


class EndedGeneration(Gate):
    """A gate that is closed for ever. Thread-safe.

    Parameters
    ----------
    gate : Gate
        The gate of the table.
    place : int
        The place of the generation among the earlier ones.
    name : str
        The name of the generation in refusals.
    """

    def __init__(self, gate: Gate, place: int, name: str) -> None:
        ended = gate.history.earlier[place]
        schema = replace(gate.schema, table=name, axes=_axes(gate.schema, ended))
        gone = _Gone() if schema.holders is None else _GoneHolders()
        super().__init__(gate._ledger, schema, gone, SystemNoise(), rows_fingerprint="")  # noqa: SLF001 - of this class
        self._present = gate
        self._ended = ended

    @property
    def history(self) -> TableHistory:
        """The history of the generation at its end."""
        return self._ended

    def history_now(self) -> TableHistory:
        """The same, for ever."""
        return self._ended

    def refresh(self) -> None:
        """Do nothing: what has ended does not change."""

    def budget(self) -> Budget:
        """The budget of the table, which all generations spend from."""
        return self._present.budget()

    def allowances(self, payer: Payer) -> tuple[BindingLimit, ...]:
        """The limits that apply to a payer on the table now."""
        return self._present.allowances(payer)

    def foresee(
        self, plan: Sequence[PlannedMeasurement], statistics: Sequence[Asked], payer: Payer
    ) -> None:
        """Do nothing: no holder would be asked."""

    def charge_each(
        self,
        parts: Sequence[tuple[Sequence[PlannedMeasurement], Sequence[Asked]]],
        payer: Payer,  # noqa: ARG002 - part of the interface of a gate; no charge is made
        *,
        epsilon_cap: Fraction | None,  # noqa: ARG002 - the same
        n_read: int | None = None,  # noqa: ARG002 - the same
        awaited: Collection[int] = (),  # noqa: ARG002 - the same
    ) -> NoReturn:
        """Refuse, whatever it would cost.

        Raises
        ------
        GenerationOver
        """
        plan = [planned for rows, _ in parts for planned in rows]
        statistics = [asked for _, some in parts for asked in some]
        price = Pricing(self.schema, self._ended).price(plan, statistics)
        raise generation_over(self.schema.table, price)


def generation_over(name: str, price: Price) -> GenerationOver:
    """The refusal of a request; `price` is what it would cost if it could be measured."""
    needed = max(price.epsilon, Fraction(1, UNITS_PER_EPSILON))
    return GenerationOver(Shortfall(table=name, epsilon_needed=needed, epsilon_left=Fraction(0)))


def _axes(schema: Schema, ended: TableHistory) -> tuple[Axis, ...]:
    """The axes of a table in an earlier generation: a federated one may have had other holders."""
    names = tuple(states_in(ended.rows_fingerprint or ""))
    return tuple(
        CategoryAxis(name=axis.name, values=names) if axis.name == schema.holders else axis
        for axis in schema.axes
    )


class _Gone:
    """The source of a generation whose data was replaced."""

    def refuse(self, *_: object) -> NoReturn:
        raise SourceUnavailable("The data of this generation was replaced.")

    fingerprint = rows_fingerprint = measure = measure_units = refuse


class _GoneHolders(_Gone):
    """The same, of a federated table."""

    generation = left = check = _Gone.refuse
