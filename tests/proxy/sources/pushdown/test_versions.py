"""A named version of a lake's table is what is counted, whatever is written to the table later."""

from pathlib import Path

import pyarrow as pa
import pytest

from cube.refusals import ConfigurationInvalid
from proxy.sources.location import SparkTable
from proxy.sources.pushdown.source import PushedDownSource
from proxy.sources.pushdown.spark import Spark
from tests.proxy.sources.conformance.places import KEY
from tests.proxy.sources.pushdown.test_rows_that_change import SCHEMA, TABLE, n_rows
from tests.support.groupings import each
from tests.support.lakes import LAKES, LakeTable
from tests.support.sail import SailServer

MORE = pa.table({"id": [100, 101], "sex": ["f", "f"], "age": [3, 3]})


@pytest.fixture(params=sorted(LAKES))
def people(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    return LAKES[request.param](tmp_path)


def at_version(sail: SailServer, table: LakeTable, version: int) -> PushedDownSource:
    where = SparkTable(address=sail.address, parts=table.parts, version=version, tls=False)
    return PushedDownSource(SCHEMA, Spark(where, 60.0), KEY)


def by_sex(source: PushedDownSource) -> dict[int, int]:
    found = source.measure(each(SCHEMA, "sex"))
    return dict(zip(found.levels[0].tolist(), found.counts.tolist(), strict=True))


def test_a_version_is_counted_after_rows_were_added_and_taken_away(
    sail: SailServer, people: LakeTable
) -> None:
    first = people.append(TABLE)
    source = at_version(sail, people, first)
    fingerprints = source.fingerprint(KEY), source.rows_fingerprint(KEY)
    assert by_sex(source) == {0: 10, 1: 10}
    second = people.append(MORE)
    assert by_sex(source) == {0: 10, 1: 10}
    later = at_version(sail, people, second)
    assert by_sex(later) == {0: 12, 1: 10}
    assert later.rows_fingerprint(KEY) != fingerprints[1]
    third = people.overwrite(TABLE.slice(0, 3))
    assert (n_rows(source), n_rows(later), n_rows(at_version(sail, people, third))) == (20, 22, 3)
    again = at_version(sail, people, first)
    assert (again.fingerprint(KEY), again.rows_fingerprint(KEY)) == fingerprints


def test_a_version_that_is_not_there_is_refused(sail: SailServer, people: LakeTable) -> None:
    version = people.append(TABLE)
    with pytest.raises(ConfigurationInvalid):
        at_version(sail, people, version + 7)
