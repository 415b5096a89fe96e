"""Prints what Django does with a database: a cell a line, its name, a tab, and JSON.

Run by `tests/clients/test_matrix.py` in a process of its own, whose settings no other test sees.
"""

import datetime as dt
import json
import os
import sys
from typing import Any

FROM, TO = dt.date(2025, 3, 1), dt.date(2025, 3, 3)
NOON = dt.datetime(2025, 12, 29, 12)  # noqa: DTZ001 - a timestamp without a zone


def found(*, binds_on_server: bool) -> dict[str, Any]:
    """The cells, with values in the text that psycopg sends or bound beside it."""
    from django.db import close_old_connections, connection, models  # noqa: PLC0415
    from django.db.models import F, Q, Value  # noqa: PLC0415
    from django.db.models.expressions import ExpressionWrapper  # noqa: PLC0415
    from django.db.models.functions import Cast  # noqa: PLC0415

    class People(models.Model):  # type: ignore[misc]  # Django is installed for the run alone
        age = models.BigIntegerField(primary_key=True)
        city = models.TextField(null=True)  # noqa: DJ001 - as the table has it
        joined = models.DateField()

        class Meta:
            app_label = f"matrix{binds_on_server}"
            db_table = "people"
            managed = False

        def __str__(self) -> str:
            return str(self.age)

    def of(name: str, rows: Any) -> list[Any]:
        grouped = rows.values(name).annotate(n=models.Count("*")).order_by(name)
        return [
            one.isoformat() if isinstance(one, dt.date) else one
            for one in grouped.values_list(name, flat=True)
        ]

    people = People.objects
    first, a_day = dt.date(2025, 12, 29), dt.timedelta(days=1)
    shifted = ExpressionWrapper(
        Value(first, models.DateField()) + Value(a_day, models.DurationField()),
        models.DateTimeField(),
    )
    moments = people.annotate(moment=Cast("joined", models.DateTimeField()))
    listed = people.extra(where=["city = ANY(%s)"], params=[["Oslo", "Rome"]])
    cells: dict[str, Any] = {
        "dates": of("joined", people.filter(joined__range=(FROM, TO))),
        "timestamps": of("joined", moments.filter(moment__gt=NOON)),
        "intervals": of("joined", people.filter(joined__gt=shifted)),
        "arrays": of("city", listed),
        "NULLs": of("city", people.filter(Q(city__isnull=True) | Q(city=F("city")))),
    }
    cities = people.values_list("city", flat=True).distinct().order_by("city")
    cells["cursors"] = len(list(cities.iterator(chunk_size=3)))
    with connection.cursor() as cursor:
        cursor.execute("SELECT city FROM people GROUP BY 1")
        cells["metadata"] = [one[0] for one in cursor.description]
    held = connection.connection
    close_old_connections()
    cells["pool reset"] = connection.is_usable() and connection.connection is held
    connection.close()
    return cells


def main() -> None:
    """Connect as JSON in the environment says, and print."""
    import django  # noqa: PLC0415
    from django.conf import settings  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415

    where = json.loads(os.environ["MATRIX_DATABASE"])
    database = {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": None, **where}
    settings.configure(DATABASES={"default": database}, USE_TZ=False)
    django.setup()
    both = []
    for binds_on_server in (False, True):
        options = connections["default"].settings_dict["OPTIONS"]
        options["server_side_binding"] = binds_on_server
        del connections["default"]
        both.append(found(binds_on_server=binds_on_server))
    assert both[0] == both[1]
    for cell, value in both[0].items():
        sys.stdout.write(f"{cell}\t{json.dumps(value)}\n")


if __name__ == "__main__":
    main()
