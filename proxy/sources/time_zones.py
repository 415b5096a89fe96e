"""Which names are time zones: those that the database knows that reads moments on their clocks."""

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
