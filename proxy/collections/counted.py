"""What is counted of a collection: read as it stands, checked, and made into estimates later."""

from cube.refusals import StoreUnavailable
from local_dp.campaign import Campaign
from local_dp.estimates.by_place import ByPlace
from local_dp.estimates.collection import CollectionEstimates
from local_dp.estimates.tally import Tally
from proxy.collections.counts import Counts
from proxy.collections.known import KnownCollection
from proxy.collections.store import CountStore


def counts_of(known: KnownCollection, store: CountStore) -> Counts:
    """The counts of a collection; of one that is closed, those with which it was.

    Raises
    ------
    StoreUnavailable
        If they cannot be read, or are others.
    """
    counts = store.counts(known.opened.digest)
    closed = known.closed
    if closed is not None and (closed.n_respondents, closed.counts_digest) != (
        counts.n_respondents,
        counts.digest,
    ):
        raise StoreUnavailable(
            f"The counts of {known.campaign.name} are not those with which it was closed.",
            hint="The server's owner has to restore the file of counts from a backup.",
        )
    return counts


def estimates_of(campaign: Campaign, counts: Counts) -> CollectionEstimates:
    """What counts say: tallies are made when they are asked for, each time anew."""
    combinations = campaign.combinations
    n_answers = {
        place: n for place, n in counts.n_answers.items() if n and place < len(combinations)
    }

    def tallies(place: int) -> tuple[Tally, ...]:
        channel = combinations[place].channel
        return (Tally(channel, n_answers[place], counts.of(place, channel.n_tallies)),)

    later = ByPlace(n_answers, tallies, is_kept=False)
    return CollectionEstimates(campaign, later, counts.n_respondents, n_answers)
