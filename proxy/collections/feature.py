"""Collections as a feature: as tables, in `data_privacy.collections`, and their order forgotten.

A collection is a table of what its answers say at one moment. Nothing of the answers is read before
a statement asks: anybody may answer, and statements about other tables must not wait for that. One
whose attributes are no columns is not among the tables: other statements go on, and its own service
says what is wrong. Where counts cannot be read, whoever asks for them is told so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cube.query import Scope
from cube.refusals import Refused
from local_dp.campaign import Campaign
from local_dp.estimates import CollectionEstimates
from planner.cache import BoundedCache
from proxy.api import LOCAL, Caller
from proxy.collections.service import CollectionService, Forgetting
from proxy.collections.status import N_PLACES_MAX, n_places_of
from proxy.collections.table import CollectedForm, CollectedTable
from proxy.feature import Feature, View

VIEW: Final = "collections"
VIEW_SCHEMA: Final = pa.schema(
    [
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("campaign", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("n_respondents", pa.int64(), nullable=False),
        pa.field("n_answered", pa.int64(), nullable=False),
        pa.field("covered", pa.string(), nullable=False),
    ]
)
N_KEPT_MAX: Final = 1024
BYTES_OF_PLACE: Final = 32  # of what was read: counts as they are stored, tallies, and shares
BYTES_KEPT_MAX: Final = BYTES_OF_PLACE * N_PLACES_MAX  # one of the largest, or many


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers to a collection that is served; see `AnswersToCome`."""

    service: CollectionService
    campaign: Campaign
    kept: BoundedCache[str, CollectionEstimates]

    @property
    def n_respondents(self) -> int:
        return self.service.n_respondents(LOCAL, self.campaign.name)

    def covered(self) -> tuple[int, tuple[Scope, ...]]:
        n, n_answers = self.service.answered(LOCAL, self.campaign.name)
        asked = self.campaign.combinations
        return n, tuple(asked[place].scope for place in sorted(n_answers) if n_answers[place])

    def estimates(self) -> CollectionEstimates:
        """What was read before, unless there are more answers since."""
        name = self.campaign.name
        known = self.kept.get(name)
        if known is not None and known.n_respondents == self.n_respondents:
            return known
        found = self.service.estimates(LOCAL, name)
        self.kept.put(name, found, n_bytes=BYTES_OF_PLACE * n_places_of(self.campaign))
        return found


class CollectedTables(Mapping[str, CollectedTable]):
    """The collections of a service, by name, as tables. Thread-safe.

    Names are those of the ledger, also where there is no table of one.

    Parameters
    ----------
    service : CollectionService
    """

    def __init__(self, service: CollectionService) -> None:
        self._service = service
        self._forms: dict[str, CollectedForm | None] = {}
        self._kept: BoundedCache[str, CollectionEstimates] = BoundedCache(
            n_entries_max=N_KEPT_MAX, n_bytes_max=BYTES_KEPT_MAX
        )

    def __getitem__(self, name: str) -> CollectedTable:
        if name not in self._service.names():  # or anybody's word would be a look into the ledger
            raise KeyError(name)
        try:
            known = self._service.asked(LOCAL, name)
        except Refused:
            raise KeyError(name) from None
        form = self._form(name, known.campaign)
        if form is None:
            raise KeyError(name)
        answers = _Answers(self._service, known.campaign, self._kept)
        return CollectedTable(answers, known.closed is None, form)

    def __iter__(self) -> Iterator[str]:
        return iter(self._service.names())

    def __len__(self) -> int:
        return len(self._service.names())

    def _form(self, name: str, campaign: Campaign) -> CollectedForm | None:
        """The form of a table, made once; a campaign keeps its name for ever."""
        if name not in self._forms:
            try:
                self._forms[name] = CollectedForm(campaign)
            except ValueError:
                self._forms[name] = None
        return self._forms[name]


class Collections(Feature):
    """The collections of a server.

    Parameters
    ----------
    service : CollectionService
    """

    def __init__(self, service: CollectionService) -> None:
        tables = CollectedTables(service)
        super().__init__(tables, {VIEW: view_of(tables)}, [Forgetting(service)])
        self.service = service

    def close(self) -> None:
        """Write the counts of answers that were not written yet."""
        self.service.close()


def view_of(tables: Mapping[str, CollectedTable]) -> View:
    """The view of some collections, which are found anew each time."""

    def rows(caller: Caller) -> Iterator[dict[str, object]]:
        for name in filter(caller.opens, tables):
            table = tables.get(name)
            if table is not None:
                yield _row(table)

    return View(VIEW_SCHEMA, rows)


def _row(table: CollectedTable) -> dict[str, object]:
    n_respondents, covered = table.covered()
    return {
        "table_name": table.campaign.name,
        "campaign": table.edition,
        "state": "open" if table.is_open else "closed",
        "epsilon": float(table.campaign.epsilon),
        "n_respondents": n_respondents,
        "n_answered": table.campaign.n_answered,
        "covered": ", ".join(f"({', '.join(scope)})" for scope in sorted(covered)),
    }
