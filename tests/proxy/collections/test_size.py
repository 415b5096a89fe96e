"""How large a collection may be: refused when it is opened, and read all the same if it is old."""

from pathlib import Path

import pytest

from accountant.ledger.collections import CollectionOpened
from accountant.ledger.ledger import Ledger
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import TooLarge
from local_dp.campaign import (
    Attribute,
    Campaign,
    campaign_digest,
    campaign_text,
    designed_views,
    planned_campaign,
)
from local_dp.estimates.collection import ByPlace
from proxy.collections.service import CollectionService
from proxy.collections.status import N_PLACES_MAX, check_size, n_places_of
from proxy.collections.store import Outcome
from tests.proxy.collections.test_service import OWNER
from tests.support.campaigns import survey

N_LEVELS = 256


def wide(n_attributes: int, size: int = 2) -> Campaign:
    """Attributes of 256 levels, asked about together."""
    names = tuple(f"a{one}" for one in range(n_attributes))
    attributes = [Attribute(name, tuple(range(N_LEVELS))) for name in names]
    views = designed_views(names, size) if size > 1 else [((name,),) for name in names]
    return planned_campaign("wide", attributes, views, epsilon_units=UNITS_PER_EPSILON)


def test_a_campaign_that_is_counted_at_too_many_places_is_refused_and_nothing_noted(
    service: CollectionService, ledger: Ledger, counts: Path
) -> None:
    campaign, before = wide(20), ledger.position
    assert n_places_of(campaign) > N_PLACES_MAX
    with pytest.raises(TooLarge, match=f"at {N_PLACES_MAX} at most") as refused:
        service.create(OWNER, campaign_text(campaign), n_respondents_max=9)
    assert "--size 1" in str(refused.value.hint)
    assert ledger.position == before
    assert not counts.exists()
    alone = wide(20, size=1)  # what the hint says
    check_size(alone)
    service.create(OWNER, campaign_text(alone), n_respondents_max=9)


def test_forty_attributes_of_64_levels_in_pairs_are_not_too_many() -> None:
    names = tuple(f"a{one}" for one in range(40))
    attributes = [Attribute(name, tuple(range(64))) for name in names]
    views = designed_views(names, 2)
    check_size(planned_campaign("wide", attributes, views, epsilon_units=UNITS_PER_EPSILON))


def test_an_old_collection_that_is_larger_is_read_where_it_is_asked(
    service: CollectionService, ledger: Ledger
) -> None:
    """Of 190 combinations, whose tallies would take gigabytes, those that the question touches."""
    campaign, first = wide(20), campaign_text(survey())
    text = campaign_text(campaign)
    service.create(OWNER, first, n_respondents_max=9)  # so that there is a file
    ledger.append_collection(lambda _: CollectionOpened(text, 99, False, "owner"))
    service.status(OWNER, "wide")
    for place in range(len(campaign.combinations)):
        token, where = bytes([place]) * 32, ((place, (0,)),)
        counted = service._kept.store.count(
            campaign_digest(text), token, where, n_respondents_max=999
        )
        assert counted is Outcome.COUNTED
    asked = "a0", "a1"
    estimates = service.estimates(OWNER, "wide")
    touched = [one for one in campaign.combinations if set(asked) & set(one.scope)]
    assert len(touched) < len(campaign.combinations) // 4
    holder = estimates.most_precise(asked)
    assert estimates.estimates[holder].n_answers == 1
    assert isinstance(estimates.estimates, ByPlace)
    assert list(estimates.estimates._made) == [holder]
