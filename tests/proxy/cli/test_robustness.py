"""`tacit plan-robustness`: before a release and after it, without a server."""

import re
from pathlib import Path

import numpy as np
import pytest

from cube.refusals import InvalidRequest, TooLarge
from proxy.cli.planning import N_BYTES_MAX, counts_in
from proxy.cli.shared.charts import doubt_svg, flips_svg
from proxy.collections.plan import N_CELLS_MAX, N_DRAWS_MIN, NoiseKind, NoisyTest
from tests.support.commands import Run

NARROW = "510, 490\n490, 510\n"  # 2,000 records, phi = .02


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    (tmp_path / "counts.csv").write_text(NARROW)
    return tmp_path / "counts.csv"


def test_before_a_release_both_noises_are_compared(run: Run, counts: Path, tmp_path: Path) -> None:
    """Noise of scale 20 flips .198 of the specification's tables: 4 errors of both simulations."""
    out = tmp_path / "flips.svg"
    told = run("plan-robustness", counts, "--epsilon", "0.05", "--out", out)
    assert told.code == 0, told.err
    central = re.search(r"a server's\W+(0\.\d+)\W+(0\.\d+)", told.out)
    local = re.search(r"the respondents'\W+(0\.\d+)", told.out)
    assert central
    assert local
    assert float(central[1]) == pytest.approx(0.198, abs=0.016)
    assert float(central[2]) == pytest.approx(0.0028, abs=1e-4)
    assert float(local[1]) > float(central[1])
    assert (
        "Without noise, the test finds no dependence: its statistic is 0.8001, and the critical "
        "value is 3.841" in told.out
    )
    drawn = out.read_bytes()
    assert drawn == flips_svg(NoisyTest.at(counts_in(counts), "0.05"))
    assert b"central" in drawn
    assert b"mathdefault" not in drawn  # numbers are written out
    other_level = run("plan-robustness", counts, "--epsilon", "0.05", "--level", "0.5")
    assert (
        "finds a dependence: its statistic is 0.8001, and the critical value is 0.4549"
        in other_level.out
    )


def test_given_columns_have_a_table_each(run: Run, counts: Path, tmp_path: Path) -> None:
    """By hand: two tables of the same counts have twice the statistic, and two degrees."""
    twice = tmp_path / "twice.csv"
    twice.write_text(f"{NARROW}\n{NARROW}")
    told = run("plan-robustness", twice, "--epsilon", "0.05", "--given", "2")
    assert told.code == 0, told.err
    assert "its statistic is 1.6, and the critical value is 5.991" in told.out
    for released in NoiseKind:
        after = run(
            "plan-robustness", twice, "--epsilon", "2", "--given", 2, "--released", released.value
        )
        assert after.code == 0, after.err
    refused = run("plan-robustness", counts, "--epsilon", "1", "--given", "3")
    assert "2 rows of counts do not make 3 tables of one size" in refused.err


@pytest.mark.parametrize("kind", NoiseKind)
def test_after_a_release_it_is_doubted(
    run: Run, counts: Path, tmp_path: Path, kind: NoiseKind
) -> None:
    out = tmp_path / "doubt.svg"
    given = ("plan-robustness", counts, "--epsilon", "0.5", "--released", kind.value)
    told = run(*given, "--out", out)
    assert told.code == 0, told.err
    assert "In the release, the test finds no dependence" in told.out
    found = re.search(r"otherwise with probability (\S+) \(", told.out)
    assert found
    test = NoisyTest.at(counts_in(counts), "0.5")
    doubt = test.doubt(kind)
    assert float(found[1]) == pytest.approx(doubt.probability, abs=5e-4)
    assert np.mean(test.statistics(kind) >= doubt.critical) == pytest.approx(doubt.probability)
    assert out.read_bytes() == doubt_svg(test, kind)


def test_respondents_of_whom_few_are_asked_have_more_noise(run: Run, counts: Path) -> None:
    given = ("plan-robustness", counts, "--epsilon", "4", "--released", "local")
    every, few = run(*given), run(*given, "--answers", 200)
    assert "as if all of them were asked" in every.out
    assert "as if all of them" not in few.out
    table = counts_in(counts)
    doubts = [NoisyTest.at(table, "4", n_answers=n).doubt(NoiseKind.LOCAL) for n in (None, 200)]
    assert [
        f"{one.probability:.3g}" in said.out for one, said in zip(doubts, (every, few), strict=True)
    ] == [True, True]
    assert doubts[1].probability > doubts[0].probability
    refused = run(*given, "--answers", 2_001)
    assert "2001 of the table's 2000 respondents cannot have answered" in refused.err


def test_a_release_may_have_counts_below_0_and_other_tables_not(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "noisy.csv"
    path.write_text("61.5,-3.25\n-8,57\n\n")
    told = run("plan-robustness", path, "--epsilon", "0.2", "--released", "central")
    assert "the test finds a dependence" in told.out
    refused = run("plan-robustness", path, "--epsilon", "0.2")
    assert refused.code
    assert "A count is below 0" in refused.err
    assert "say with which noise" in refused.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "rows of one length"),
        ("1,2\n3\n", "rows of one length"),
        ("1,2\n3,x\n", "Line 2 of"),
        ("1,2\n3,x\n", "has no number in place 2. Write counts separated by commas"),
        ("1,2,\n3,4,\n", "has no count in place 3. There may be a comma too many"),
        ("1;2\n3;4\n", "has no number in place 1"),
        ("1,\0\n3,4\n", "has no number in place 2"),
        ("0.02,0.48\n0.25,0.25\n", "not whole"),
        ("510.5,490\n490,510\n", "not whole"),
        ("1,2,3\n", "two rows"),
        ("1\n2\n", "two rows"),
        ("0,0\n0,0\n", "more than 0"),
        ("1,nan\n2,3\n", "at most 1000000000"),
        ("1,inf\n2,3\n", "at most 1000000000"),
        ("1,1e10\n2,3\n", "at most 1000000000"),
        ("\n".join([",".join("1" * 17)] * 16), "at most 256 counts"),
    ],
)
def test_what_is_no_table_is_refused(run: Run, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "counts.csv").write_text(text)
    ended = run("plan-robustness", tmp_path / "counts.csv", "--epsilon", "1")
    assert ended.code
    assert said in ended.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--epsilon", "0"), "at least 0.0001"),
        (("--epsilon", "1e-9"), "at least 0.0001"),
        (("--epsilon", "17"), "at most 16"),
        (("--epsilon", "x"), "decimal number"),
        (("--epsilon", "1", "--level", "1"), "below 1"),
        (("--epsilon", "1", "--out", "plan.png"), "does not end in .svg"),
        (("--epsilon", "1", "--released", "both"), "central"),
    ],
)
def test_what_makes_no_test_is_refused(
    run: Run, counts: Path, more: tuple[str, ...], said: str
) -> None:
    ended = run("plan-robustness", counts, *more)
    assert ended.code
    assert said in ended.err


@pytest.mark.parametrize("more", [(), ("--released", "local"), ("--released", "central")])
def test_at_the_least_epsilon_there_is_an_answer(
    run: Run, counts: Path, more: tuple[str, ...]
) -> None:
    told = run("plan-robustness", counts, "--epsilon", "0.0001", *more)
    assert told.code == 0, told.err


def test_shares_are_no_release_of_a_collection(run: Run, tmp_path: Path) -> None:
    """They would be of one respondent, and without noise."""
    path = tmp_path / "shares.csv"
    path.write_text("0.02,0.48\n0.25,0.25\n")
    ended = run("plan-robustness", path, "--epsilon", "1", "--released", "local")
    assert ended.code
    assert "at least 2" in ended.err
    assert "not shares" in ended.err


def test_a_table_as_a_spreadsheet_writes_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_bytes(b"\xef\xbb\xbf510,490\r\n490,510\r\n")
    assert counts_in(path).tolist() == [[510, 490], [490, 510]]
    path.write_bytes("510,490\n490,510\n".encode("utf-16"))
    with pytest.raises(InvalidRequest, match="not text in UTF-8"):
        counts_in(path)


def test_no_more_of_a_file_is_read_than_a_table_may_have(tmp_path: Path) -> None:
    """A file of a tebibyte, most of which is not there: reading all of it would not end."""
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(TooLarge, match=f"more than {N_BYTES_MAX} bytes"):
        counts_in(path)
    path.write_text("\n".join([",".join(["1" * 200] * 16)] * 16))
    assert counts_in(path).size == N_CELLS_MAX


def test_what_a_file_holds_instead_of_counts_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("1,2\n3,hunter2" + "x" * 60_000)
    with pytest.raises(InvalidRequest) as refused:
        counts_in(path)
    assert "hunter2" not in refused.value.explain()
    assert len(refused.value.explain()) < len(str(path)) + 150


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_drawn(
    run: Run, counts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(NoisyTest, "flip")
    out = tmp_path / "none" / "flips.svg"
    ended = run("plan-robustness", counts, "--epsilon", "1", "--out", out)
    assert ended.code
    assert "There is no directory" in ended.err


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        counts_in(tmp_path / "none.csv")


def test_large_tables_are_simulated_less_often() -> None:
    small, large = (NoisyTest.at(np.ones(shape), "1") for shape in ((2, 2), (16, 16)))
    assert small.n_draws == 20 * N_DRAWS_MIN
    assert (large.table.size, large.n_draws) == (N_CELLS_MAX, N_DRAWS_MIN)
    assert small.flip(NoiseKind.LOCAL) == small.flip(NoiseKind.LOCAL)
