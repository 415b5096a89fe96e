"""Time zones, as the database knows them that reads the rows' moments on their clocks."""

import datetime as dt
from functools import cache
from typing import Final

from proxy.sources.closed import closed_database

N_MINUTES_SET_BACK_MAX: Final = 25 * 60  # clocks that crossed the date line went back by a day


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


def local_time_from(instant: dt.datetime, zone: str) -> dt.datetime:
    """The earliest that the clock of a zone shows at an instant, or will show after it.

    What comes before it is over: no moment from the instant on is called by such a time. Where a
    clock will be set back within the hour that is the time to which it is set back.

    >>> str(local_time_from(dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC), "Europe/Oslo"))
    '2026-10-25 02:00:00'
    >>> str(local_time_from(dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC), "Europe/Oslo"))
    '2026-10-25 02:30:00'
    """
    # Clocks are set at whole minutes: these are looked at, and the instant itself.
    shown = """
        SELECT min(timezone($zone, moment)) FROM (
            SELECT CAST($instant AS TIMESTAMPTZ) AS moment UNION ALL
            SELECT date_trunc('minute', CAST($instant AS TIMESTAMPTZ)) + to_minutes(i)
            FROM range(1, $n) AS t(i)
        )
    """
    given = {"zone": zone, "instant": instant.isoformat(), "n": N_MINUTES_SET_BACK_MAX + 1}
    with closed_database() as database:
        ((local,),) = database.execute(shown, given).fetchall()
    found: dt.datetime = local
    return found
