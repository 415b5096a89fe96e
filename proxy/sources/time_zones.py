"""Time zones, as the database knows them that reads the rows' moments on their clocks."""

import datetime as dt
from functools import cache

from proxy.sources.closed import closed_database


@cache
def is_time_zone(name: str) -> bool:
    """Whether a name is that of a time zone.

    >>> is_time_zone("Europe/Oslo"), is_time_zone("Europe/Atlantis")
    (True, False)
    """
    with closed_database() as database:
        zones = "SELECT count(*) > 0 FROM pg_timezone_names() WHERE name = ?"
        ((is_known,),) = database.execute(zones, [name]).fetchall()
    return bool(is_known)


def local_time(instant: dt.datetime, zone: str) -> dt.datetime:
    """What the clock of a zone shows at an instant.

    >>> str(local_time(dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC), "Europe/Oslo"))
    '2024-06-01 14:00:00'
    """
    with closed_database() as database:
        shown = "SELECT timezone(?, CAST(? AS TIMESTAMPTZ))"
        ((local,),) = database.execute(shown, [zone, instant.isoformat()]).fetchall()
    found: dt.datetime = local
    return found
