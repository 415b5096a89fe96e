"""Collections of a real server whose answers are made up: nobody sends thousands of them here."""

from collections.abc import Iterator
from contextlib import contextmanager

from local_dp.campaign import campaign_digest, campaign_text
from local_dp.estimates.collection import CollectionEstimates
from proxy.api.requests import Caller
from proxy.collections.service import CollectionService
from proxy.collections.status import CollectionStatus
from proxy.collections.table import CollectedTable
from proxy.engine.engine import Engine
from proxy.feature import Feature
from tests.support.serving import serving


class AnsweredCollection(CollectionService):
    """One collection, with the answers that it is given; it counts how often they are read."""

    def __init__(self, estimates: CollectionEstimates) -> None:
        self.given = estimates
        self.n_read = 0

    def estimates(self, caller: Caller, name: str) -> CollectionEstimates:
        del caller
        assert name == self.given.campaign.name
        self.n_read += 1
        return self.given

    def status(self, caller: Caller, name: str) -> CollectionStatus:
        del caller
        assert name == self.given.campaign.name
        campaign, n = self.given.campaign, self.given.n_respondents
        digest = campaign_digest(campaign_text(campaign))
        return CollectionStatus(
            campaign,
            digest,
            n_respondents_max=n,
            is_by_invitation=False,
            is_closed=True,
            n_respondents=n,
            opened_by="owner",
        )


@contextmanager
def serving_answers(collection: AnsweredCollection) -> Iterator[str]:
    """A server of one collection; its address."""
    own = {collection.given.campaign.name: CollectedTable(collection.given)}
    with serving(Engine({}, features=[Feature(own)]), collections=collection) as address:
        yield address
