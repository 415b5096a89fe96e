"""What the configuration says of one private table, checked and complete."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.gate.open_table import Funds
from cube.schema import Schema
from cube.target import AccuracyTarget, SumTarget
from planner.measuring.gaussian_opening import GaussianOffer
from planner.measuring.strategy import Strategy
from proxy.config.extract import ExtractSettings
from proxy.config.growing import Closing
from proxy.config.sharing import Sharing
from proxy.sources.location import Location, TableLocation
from proxy.sources.spark_table import SparkTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """One private table: its public schema, its location, and its budget.

    Parameters
    ----------
    schema : Schema
        Its public schema.
    location : TableLocation
        What it is read from, or what has its units.
    funds : Funds
        The total epsilon that may be spent on it, exactly as written, and with whom it is shared.
    default : AccuracyTarget
        The target of counts in requests that name none.
    sums : mapping
        The declared targets for sums of measures, by their names.
    strategy : Strategy
        How measurements are chosen when the history is not enough.
    gaussian : GaussianOffer, optional
        The delta under which Gaussian noise may be bought, and what is expected to be spent; None
        to allow no Gaussian noise.
    sharing : Sharing
        Whether analysts may see what others have asked; `history` in the file.
    has_previews : bool
        Whether a few rows asked for are those of a synthetic table; `preview` in the file.
    closing : Closing, optional
        Of a table that grows, up to where its rows are closed.
    per_unit : tuple of str
        The columns that are the same in all rows of a unit.
    default_cost : Fraction, optional
        The most that a statement without a target may cost.
    per_query : Fraction, optional
        The limit of each analyst's statements that the ledger begins with.
    extract : ExtractSettings
        Where its rows are kept.
    """

    schema: Schema
    location: TableLocation
    funds: Funds
    default: AccuracyTarget
    sums: Mapping[str, SumTarget] = field(default_factory=dict)
    strategy: Strategy = Strategy.AUTO
    gaussian: GaussianOffer | None = None
    sharing: Sharing = Sharing.SHARED
    has_previews: bool = False
    closing: Closing | None = None
    per_unit: tuple[str, ...] = ()
    default_cost: Fraction | None = None
    per_query: Fraction | None = None
    extract: ExtractSettings = field(default_factory=ExtractSettings)

    @property
    def read_from(self) -> Location:
        """Where its rows are read, of a table that is not counted where it is."""
        if isinstance(self.location, SparkTable):
            raise TypeError("a table in Spark stays there")
        return self.location

    @property
    def budget(self) -> Fraction:
        """The total epsilon that may be spent on it, by all tables that share it."""
        return self.funds.budget
