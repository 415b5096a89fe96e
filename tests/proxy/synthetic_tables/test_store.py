"""Synthetic tables on disk: what is kept is found again, whole or not at all."""

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import NameTaken, StoreUnavailable, UnknownName
from cube.statistic import Score
from planner.sql.statements import read_statement
from planner.sql.synthetic_statements import CreateSynthetic
from proxy.synthetic_tables import store as module
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.request import Evaluation
from proxy.synthetic_tables.store import ORPHAN_SECONDS, SyntheticStore
from tests.support.synthetic import MODEL, ROWS, record_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "synthetic"


@pytest.fixture
def store(folder: Path) -> SyntheticStore:
    return SyntheticStore(folder)


def names(store: SyntheticStore) -> list[str]:
    return sorted(record.name for record in store.tables().values())


def test_a_table_is_found_again_after_a_restart(store: SyntheticStore, folder: Path) -> None:
    record = record_of("Adult_1")
    store.publish(record, [ROWS], MODEL)
    again = SyntheticStore(folder)
    assert again.tables() == {record.key: record}
    assert record.key == ("people", "adult_1")
    assert again.rows(record).equals(ROWS)
    assert again.model(record) == MODEL
    assert folder.stat().st_mode & 0o777 == 0o700


def test_nothing_is_there_before_the_folder_is(store: SyntheticStore, folder: Path) -> None:
    assert not store.tables()
    assert not folder.exists()


@given(
    epsilon=st.fractions(min_value=0, max_value=100),
    text=st.text(max_size=20),
    seed=st.integers(0, 2**63 - 1),
    score=st.sampled_from(Score),
)
def test_a_record_is_read_as_it_was_written(
    epsilon: Fraction, text: str, seed: int, score: Score
) -> None:
    record = replace(
        record_of("s"),
        epsilon=epsilon,
        seed=seed,
        incomplete=text,
        made_by=text,
        columns=((text, "DECIMAL(9,2)"),),
        score=score,
        degree=0,
        hierarchies=True,
    )
    assert SyntheticRecord.from_json(record.to_json()) == record


def test_a_record_says_what_its_rows_are_for_and_how_far_off_they_are() -> None:
    found = Evaluation(
        estimate=0.03125,
        half_width=0.002,
        n_pairs=9,
        n_pairs_all=66,
        epsilon_spent=Fraction(1, 30),
    )
    record = replace(
        record_of("s"),
        target=("a 'b'", "city"),
        workload=(("age",), ("age", 'the "city"')),
        evaluate=Fraction(1, 20),
        evaluation=found,
    )
    again = SyntheticRecord.from_json(record.to_json())
    assert again == record
    assert again.evaluated == "0.0312 +- 0.0020 (9 of 66 pairs)"
    order = f"CREATE SYNTHETIC TABLE s FROM people WITH ({again.options})"
    read = read_statement(order)
    assert isinstance(read, CreateSynthetic)
    assert (read.target, read.evaluate) == (record.target, record.evaluate)
    assert read.workload == (
        'SELECT COUNT(*) FROM "people" GROUP BY "age"; '
        'SELECT COUNT(*) FROM "people" GROUP BY "age", "the ""city"""'
    )


def test_a_record_from_before_there_were_targets_is_read() -> None:
    values = json.loads(record_of("s").to_json())
    for name in ("target", "workload", "evaluate", "evaluation"):
        del values[name]
    assert SyntheticRecord.from_json(json.dumps(values)) == record_of("s")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        record_of("s").to_json().replace('"evaluation": null', '"evaluation": 3'),
        record_of("s").to_json().replace('"evaluation": null', '"evaluation": {}'),
        "{}",
        record_of("s").to_json().replace('"format": 1', '"format": 2'),
        record_of("s").to_json().replace("pairwise", "gan"),
        record_of("s").to_json().replace('"1/3"', '"1/0"'),
        record_of("s").to_json().replace("BIGINT", "BLOB"),
        record_of("s").to_json().replace('"n_rows": 2,', ""),
        record_of("s").to_json().replace('"n_rows"', '"rows"'),
    ],
)
def test_a_record_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        SyntheticRecord.from_json(text)


def test_a_broken_record_hides_its_table_and_no_other(store: SyntheticStore, folder: Path) -> None:
    store.publish(record_of("good"), [ROWS], MODEL)
    (folder / "bad.json").write_text("{")
    (folder / "other.json").write_text(record_of("renamed").to_json())
    assert names(store) == names(SyntheticStore(folder)) == ["good"]


def test_a_name_is_taken_once_in_any_letter_case(store: SyntheticStore, folder: Path) -> None:
    store.publish(record_of("s", 1), [ROWS], MODEL)
    with pytest.raises(NameTaken):
        store.publish(record_of("S", 2), [ROWS], MODEL)
    assert store.tables()["people", "s"].id == record_of("s", 1).id
    assert len(list(folder.iterdir())) == 3


def test_of_many_who_publish_a_name_at_once_one_does(folder: Path) -> None:
    n_others = 8
    barrier, won = threading.Barrier(n_others), []

    def publish(number: int) -> None:
        barrier.wait()
        try:
            SyntheticStore(folder).publish(record_of("s", number), [ROWS], MODEL)
        except NameTaken:
            return
        won.append(number)

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(n_others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = won
    assert SyntheticStore(folder).tables()["people", "s"] == record_of("s", winner)
    assert len(list(folder.iterdir())) == 3


def test_what_is_replaced_is_gone(store: SyntheticStore, folder: Path) -> None:
    old = store.publish(record_of("s", 1), [ROWS], MODEL)
    new = store.publish(record_of("S", 2), [ROWS.slice(0, 1)], MODEL, replaces=old)
    assert store.tables() == {new.key: new}
    assert store.rows(new).num_rows == 1
    assert len(list(folder.iterdir())) == 3
    with pytest.raises(UnknownName, match=r"dropped or replaced|has changed"):
        SyntheticStore(folder).rows(old)


def test_what_is_dropped_is_gone_and_dropping_again_is_harmless(
    store: SyntheticStore, folder: Path
) -> None:
    record = record_of("s")
    store.publish(record, [ROWS], MODEL)
    store.drop(record)
    store.drop(record)
    assert not store.tables()
    assert not list(folder.iterdir())


def test_dropping_a_table_leaves_the_one_that_replaced_it(store: SyntheticStore) -> None:
    old, new = record_of("s", 1), record_of("s", 2)
    store.publish(old, [ROWS], MODEL)
    store.publish(new, [ROWS], MODEL, replaces=old)
    store.drop(old)
    assert store.tables() == {new.key: new}


def test_another_server_on_the_folder_sees_it_without_a_restart(folder: Path) -> None:
    here, there = SyntheticStore(folder), SyntheticStore(folder)
    for number in range(20):  # at once: often within one tick of the file system's clock
        record = record_of(f"s{number}", number)
        here.publish(record, [ROWS], MODEL)
        assert there.tables()[record.key] == record
        assert there.rows(record).equals(ROWS)
    here.drop(record_of("s0", 0))
    assert "s0" not in names(there)


def test_a_folder_at_rest_is_not_read_again(
    store: SyntheticStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(record_of("s"), [ROWS], MODEL)
    long_ago = time.time() - 60
    os.utime(folder, (long_ago, long_ago))
    before = store.tables()

    def never(_path: Path) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(module, "_read_record", never)
    assert store.tables() is before


@pytest.fixture
def torn(store: SyntheticStore, folder: Path) -> Path:
    """A table whose server died before its record had its name."""
    store.publish(record_of("s", 1), [ROWS], MODEL)
    (path,) = folder.glob("s.*.json")
    path.rename(folder / f"{record_of('s', 1).id}.new")
    return folder


def test_sources_have_names_of_their_own(store: SyntheticStore, folder: Path) -> None:
    one = store.publish(record_of("s", 1), [ROWS], MODEL)
    staff = replace(record_of("s", 2), table="staff")
    other = store.publish(staff, [ROWS.slice(0, 1)], MODEL)
    assert SyntheticStore(folder).tables() == {one.key: one, other.key: other}
    store.drop(one)
    assert store.tables() == {other.key: other}
    assert store.rows(other).num_rows == 1


@pytest.fixture
def earlier(store: SyntheticStore, folder: Path) -> SyntheticRecord:
    """A table that was kept when a name was one for all sources."""
    record = record_of("S", 1)
    store.publish(record, [ROWS], MODEL)
    (path,) = folder.glob("s.*.json")
    path.rename(folder / "s.json")
    return record


def test_a_table_that_was_kept_earlier_is_read_and_keeps_its_name(
    earlier: SyntheticRecord, folder: Path
) -> None:
    store = SyntheticStore(folder)
    assert store.tables() == {earlier.key: earlier}
    assert store.rows(earlier).equals(ROWS)
    with pytest.raises(NameTaken):
        store.publish(record_of("s", 2), [ROWS], MODEL)
    store.publish(replace(record_of("s", 3), table="staff"), [ROWS], MODEL)
    assert len(store.tables()) == 2
    store.drop(earlier)
    assert [record.table for record in store.tables().values()] == ["staff"]
    assert len(list(folder.iterdir())) == 3


def test_a_table_that_replaces_an_earlier_one_leaves_nothing_of_it(
    earlier: SyntheticRecord, folder: Path
) -> None:
    store, new = SyntheticStore(folder), record_of("s", 2)
    store.publish(new, [ROWS], MODEL, replaces=earlier)
    assert store.tables() == {new.key: new}
    assert len(list(folder.iterdir())) == 3


def test_an_earlier_record_that_a_crash_left_is_not_seen_again(
    earlier: SyntheticRecord, folder: Path
) -> None:
    text = (folder / "s.json").read_text()
    store, new = SyntheticStore(folder), record_of("s", 2)
    store.publish(new, [ROWS], MODEL, replaces=earlier)
    (folder / "s.json").write_text(text)
    assert store.tables() == {new.key: new}
    store.drop(new)
    assert not store.tables()


def test_a_table_without_its_record_is_not_there(torn: Path) -> None:
    assert not SyntheticStore(torn).tables()
    assert len(list(torn.iterdir())) == 3
    SyntheticStore(torn).publish(record_of("s", 2), [ROWS], MODEL)


def test_what_belongs_to_no_record_is_taken_away_after_a_day(torn: Path) -> None:
    SyntheticStore(torn).publish(record_of("kept", 3), [ROWS], MODEL)
    long_ago = time.time() - 2 * ORPHAN_SECONDS
    for path in torn.iterdir():
        os.utime(path, (long_ago, long_ago))
    assert names(SyntheticStore(torn)) == ["kept"]
    assert len(list(torn.iterdir())) == 3


def test_what_cannot_be_written_leaves_nothing(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    store = SyntheticStore(folder)
    with pytest.raises(StoreUnavailable):
        store.check_writable()
    with pytest.raises(StoreUnavailable):
        store.publish(record_of("s"), [ROWS], MODEL)
    with pytest.raises(StoreUnavailable):
        store.tables()


def test_rows_that_cannot_be_read_are_refused(store: SyntheticStore, folder: Path) -> None:
    record = record_of("s")
    store.publish(record, [ROWS], MODEL)
    (folder / f"{record.id}.parquet").write_bytes(b"PAR1")
    (folder / f"{record.id}.model").write_text("{")
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        SyntheticStore(folder).rows(record)
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        SyntheticStore(folder).model(record)


def test_rows_are_written_part_by_part_and_counted(store: SyntheticStore, folder: Path) -> None:
    one = record_of("s")
    sizes: list[int] = []

    def parts() -> Iterator[pa.Table]:
        for _ in range(3):
            sizes.append((folder / f"{one.id}.parquet").stat().st_size)
            yield ROWS

    kept = store.publish(one, parts(), MODEL)
    assert sizes[0] < sizes[1] < sizes[2], "a part is on disk before the next one is drawn"
    assert store.rows(kept).equals(pa.concat_tables([ROWS] * 3))
    assert kept == replace(one, n_rows=3 * ROWS.num_rows, n_bytes=3 * ROWS.nbytes)


def test_rows_that_cannot_be_drawn_leave_nothing(store: SyntheticStore, folder: Path) -> None:
    def parts() -> Iterator[pa.Table]:
        yield ROWS
        raise MemoryError

    with pytest.raises(MemoryError):
        store.publish(record_of("s"), parts(), MODEL)
    assert not store.tables()
    assert not list(folder.iterdir())


def test_rows_keep_the_types_that_the_record_says(store: SyntheticStore) -> None:
    record = record_of("s")
    dictionary = ROWS.set_column(1, "city", ROWS["city"].dictionary_encode())
    store.publish(record, [dictionary], MODEL)
    assert store.rows(record).schema == pa.schema([("age", pa.int64()), ("city", pa.string())])
