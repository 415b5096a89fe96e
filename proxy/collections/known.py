"""A collection whose campaign was read: what a call about it needs, made once."""

from accountant.ledger.collections import Collection
from local_dp.campaign import Campaign
from local_dp.campaign_text import read_campaign
from proxy.collections.tokens import TokenKey


class KnownCollection:
    """A collection with its campaign read, and the key of its tokens.

    Parameters
    ----------
    collection : Collection
    ledger_key : bytes
    """

    def __init__(self, collection: Collection, ledger_key: bytes) -> None:
        self.collection = collection
        self.opened = collection.opened
        self.closed = collection.closed
        self.campaign: Campaign = read_campaign(collection.opened.campaign)
        self.tokens = TokenKey(ledger_key, collection.opened.digest)
