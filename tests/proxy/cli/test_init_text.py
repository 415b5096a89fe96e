"""Files of text that are not surely read are asked about, and no row of theirs is ever shown."""

import gzip
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.schema import Schema
from proxy.cli import app as cli
from proxy.config.settings import load
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.public.file import load_public_tables
from tests.support.groupings import each

CANARY = "Müller"
N = "--n-records-max=100"
LEVELS = "--read-levels-from-data"


class Init:
    """Runs `tacit init` on a file, and keeps everything that it said or wrote."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def write(self, name: str, data: str | bytes, encoding: str = "utf-8") -> Path:
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode(encoding))
        return path

    def __call__(self, path: Path, *options: str) -> tuple[int, str]:
        """The exit code, and what was said and written."""
        output = self.folder / "tacit.toml"
        output.unlink(missing_ok=True)
        with pytest.raises(SystemExit) as ended:
            cli.main(["init", str(path), "--table", "people", "-o", str(output), *options])
        shown = self._capsys.readouterr()
        draft = output.read_text() if output.exists() else ""
        return int(ended.value.code or 0), " ".join((shown.out + shown.err).split()) + draft

    def table(self) -> dict[str, Any]:
        found: dict[str, Any] = tomllib.loads((self.folder / "tacit.toml").read_text())
        table: dict[str, Any] = found["tables"]["people"]
        return table

    def served(self) -> dict[str, int]:
        """How many rows `serve` has of each level of each column, as text."""
        (table,) = load(self.folder / "tacit.toml").tables
        source = DuckDbSource(table.schema, table.read_from)
        return {axis.name: _n_rows(source, table.schema, axis.name) for axis in table.schema.axes}


def _n_rows(source: DuckDbSource, schema: Schema, name: str) -> int:
    return int(source.measure(each(schema, name)).counts.sum())


@pytest.fixture
def init(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Init:
    return Init(tmp_path, capsys)


ROWS = f"key;name;pay\n1;{CANARY};2500,5\n2;Meyer;1300\n3;{CANARY};900,25\n"


@pytest.mark.parametrize(
    ("name", "data", "option"),
    [
        ("a.csv", f"1;{CANARY};2500\n2;Meyer;2600\n", "--no-header"),
        ("a.csv", f"{CANARY};Anna\nMeyer;Hans\n", "--no-header"),
        ("a.csv", f"{CANARY};Oslo;x\nMeyer;Oslo;1\nHaug;Voss;2\n", "--no-header"),
        ("a.csv", f"{CANARY};12.03.1961\nMeyer;01.04.1970\n", "--no-header"),
        ("a.csv", f"{CANARY};3 Jan 1961\nMeyer;4 Apr 1970\n", "--no-header"),
        ("a.csv", f"{CANARY};a@b.no;1\nMeyer;c@d.no;2\n", "--no-header"),
        ("a.csv", f"{CANARY};;1\nMeyer;c;2\n", "--no-header"),
        ("a.csv", f"{CANARY};€ 1.000;1\nMeyer;c;2\n", "--no-header"),
        ("a.csv", f"{CANARY}, Anna;1\nMeyer, Hans;2\n", "--delimiter"),
        ("a.csv", f"{CANARY} 1\nMeyer 2\n", "--delimiter"),
        ("a.csv", f"{CANARY}:1\nMeyer:2\n", "--delimiter"),
        ("a.csv", f'"{CANARY}\nAnna",x\n"y",1\n', "--no-header"),
        ("a.csv", f"key;name;pay\n1;{CANARY};2500,5\n2;Meyer;2\n", "--decimal"),
        ("a.csv", f'key,pay\n1,"{CANARY}"\n2,"1,5"\n"{CANARY}",x,y\n', "more fields"),
        ("a.csv", f"Report of 2024\nkey;name\n1;{CANARY}\n", "--delimiter"),
        ("a.csv", f"key;name\n1;{CANARY};extra\n", "more fields"),
        ("a.csv", f"key;name;extra\n1;{CANARY}\n", "more fields"),
        ("a.csv", f'key;name\n1;"{CANARY}\n', "double quote"),
        ("a.csv", f"sep=;\nkey;name\n1;{CANARY}\n", "sep="),
        ("a.csv", f"# {CANARY};x\nkey;name\n1;{CANARY}\n", "--no-header"),
        ("a.csv", f"{CANARY};{CANARY}\n1;2\n", "distinct column names"),
        ("a.csv", f'{{"name": "{CANARY}"}}\n', "holds JSON"),
        ("a.csv", f'[{{"name": "{CANARY}"}}]\n', "holds JSON"),
        ("a.csv", f"<table><tr><td>{CANARY}</td></tr></table>\n", "holds XML or HTML"),
        ("a.jsonl", f'{{"name": "{CANARY}"}}\n', "is JSON"),
        ("a.xlsx", CANARY, "is a spreadsheet"),
        ("a.sav", CANARY, "a statistics file"),
        ("a.txt", CANARY, "rename it to .csv"),
        ("a.zip", CANARY, "an archive"),
        ("a.csv", b"PK\x03\x04" + CANARY.encode(), "an Excel workbook"),
        ("a.csv", gzip.compress(CANARY.encode(), mtime=0), "ends in .gz"),
        ("a.csv.gz", CANARY, "is not a gzip file"),
        ("a.csv", "", "nothing in its first line"),
        ("a.csv", "\n\nkey;name\n", "nothing in its first line"),
        ("a.csv", f"key;name\n1;{CANARY}\n".encode("latin-1"), "--encoding"),
        ("a.csv", f"key;{CANARY}\n1;x\n".encode("latin-1"), "--encoding"),
        ("a.csv", f"key;{CANARY}\n1;x\n".encode("utf-16-le"), "--encoding"),
        ("a.csv", f"key;name\r\n1;{CANARY}\n2;x\n", "has different line endings"),
    ],
)
def test_what_is_not_sure_is_asked_for_and_no_row_is_shown(
    init: Init, name: str, data: str | bytes, option: str
) -> None:
    code, said = init(init.write(name, data))
    assert code
    assert option in said
    assert CANARY not in said
    assert "Anna" not in said


@pytest.mark.parametrize(
    ("name", "data", "options", "keys"),
    [
        ("a.csv", ROWS, ("--decimal", ","), {"delimiter": ";", "decimal": ","}),
        ("a.csv", "\ufeff" + ROWS, ("--decimal", ","), {"delimiter": ";", "decimal": ","}),
        ("a.csv", ROWS.replace("\n", "\r\n"), ("--decimal", ","), {"delimiter": ";"}),
        ("a.csv", ROWS.replace("\n", "\r"), ("--decimal", ","), {"delimiter": ";"}),
        ("a.csv", ROWS.replace(";", "|"), ("--decimal", ","), {"delimiter": "|"}),
        ("a.tsv", ROWS.replace(";", "\t"), ("--decimal", ","), {"decimal": ","}),
        ("a.csv", ROWS.replace(";", "\t"), ("--decimal", ",", "--delimiter", "tab"), {}),
        ("a.csv", ROWS.replace(";", ":"), ("--decimal", ",", "--delimiter", ":"), {}),
        ("a.csv", ROWS.encode("utf-16"), ("--decimal", ","), {"encoding": "utf-16"}),
        ("a.csv", ROWS.encode("cp1252"), ("--decimal=,", "--encoding=Windows-1252"), {}),
        ("a.csv", ROWS.encode("utf-16-be"), ("--decimal=,", "--encoding=utf-16-be"), {}),
        ("a.csv.gz", gzip.compress(ROWS.encode(), mtime=0), ("--decimal", ","), {"delimiter": ";"}),
        (
            "a.csv.gz",
            gzip.compress(ROWS.encode("latin-1"), mtime=0),
            ("--decimal=,", "--encoding=latin-1"),
            {"encoding": "iso8859-1"},
        ),
        (
            "a.csv",
            ROWS.partition("\n")[2],
            ("--decimal=,", "--no-header", "--delimiter=;"),
            {"header": False},
        ),
    ],
)
def test_what_init_was_told_is_in_the_draft_and_serve_reads_the_same(
    init: Init, name: str, data: str | bytes, options: tuple[str, ...], keys: dict[str, Any]
) -> None:
    code, said = init(init.write(name, data), *options, LEVELS, N)
    assert not code, said
    table = init.table()
    assert {key: table.get(key) for key in keys} == keys
    of_name, of_pay = [*table["columns"].values()][-2:]
    assert of_name["levels"] == ["Meyer", CANARY]
    assert (of_pay["kind"], of_pay["low"], of_pay["step"]) == ("measure", 0, 0.01)
    assert set(init.served().values()) == {3}


def test_zstd_is_read_as_gzip_is(init: Init) -> None:
    path = init.folder / "a.csv.zst"
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(ROWS.encode())
    assert not init(path, "--decimal", ",", LEVELS, N)[0]
    assert set(init.served().values()) == {3}


def test_names_that_sql_cannot_have_are_left_out_and_the_others_served(init: Init) -> None:
    header = '"","annual\nincome",city,"' + "x" * 64 + '"'
    path = init.write("a.csv", f"{header}\n1,2,Oslo,4\n2,3,Voss,5\n")
    code, said = init(path, "--header", LEVELS, N)
    assert not code
    assert "annual?income: a name in SQL has 1 to 63 printable characters" in said
    assert "no name in the first line" in said
    assert init.served() == {"city": 2}


def test_a_point_between_thousands_is_no_decimal_point(init: Init) -> None:
    """1.234 is read as text beside decimal commas, and never as one and a bit."""
    path = init.write("a.csv", "k;pay\n1;1.234\n2;1.234,50\n")
    assert not init(path, "--decimal", ",")[0]
    assert init.table()["columns"]["pay"]["kind"] == "category"
    config = init.folder / "tacit.toml"
    text = config.read_text().replace("# n_records_max = ...", "n_records_max = 10")
    text = text.replace("# low = ...", "low = 0").replace("# high = ...", "high = 9")
    config.write_text(
        text.replace('kind = "category"', 'kind = "measure"\nlow = 0\nhigh = 5000\nstep = 1')
    )
    (table,) = load(config).tables
    with pytest.raises(Exception, match="not of type") as caught:
        DuckDbSource(table.schema, table.read_from)
    assert "234" not in str(caught.value)


def test_only_some_columns_are_drafted(init: Init) -> None:
    path = init.write("a.csv", ROWS)
    code, _ = init(path, "--decimal", ",", "--columns", "NAME,pay")
    assert not code
    assert [*init.table()["columns"]] == ["name", "pay"]
    code, said = init(path, "--decimal", ",", "--columns", "wage")
    assert code
    assert "has no column wage" in said


def test_two_parquet_columns_of_one_name_are_refused(init: Init) -> None:
    path = init.folder / "a.parquet"
    nested = pa.array([{"a": 1, "b": [2]}])
    pq.write_table(pa.table([nested, pa.array([1]), pa.array([2])], names=["s", "a", "A"]), path)
    code, said = init(path)
    assert code
    assert "columns 2 and 3 share one" in said
    pq.write_table(pa.table([nested, pa.array([1])], names=["s", "a"]), path)
    assert not init(path)[0]
    assert [*init.table()["columns"]] == ["a"]
    assert init(path, "--delimiter", ";")[0]


def test_keys_of_text_go_with_text(init: Init) -> None:
    pq.write_table(pa.table({"a": [1]}), init.folder / "a.parquet")
    assert not init(init.folder / "a.parquet", LEVELS, N)[0]
    config = init.folder / "tacit.toml"
    text = config.read_text()
    for line, said in (
        ('delimiter = ";"', "goes with a file of text"),
        ('encoding = "klingon"', "encoding should name one"),
        ('delimiter = ";;"', "should be one character"),
        ('decimal = "·"', 'should be "." or ","'),
    ):
        config.write_text(text.replace("confidence = 0.95", f"{line}\nconfidence = 0.95"))
        with pytest.raises(Exception, match=r"tables\.people") as caught:
            load(config)
        assert said.removeprefix("encoding ") in str(caught.value)


def test_public_tables_and_views_read_text_as_it_is_written(init: Init) -> None:
    init.write("a.csv", ROWS.encode("cp1252"))
    init.write("b.csv", f"name;share\n{CANARY};0,5\nMeyer;1,5\n".encode("cp1252"))
    config = init.folder / "tacit.toml"
    config.write_text(
        "[ledger]\npath = 'l'\n[public.b]\nsource = 'b.csv'\ndelimiter = ';'\ndecimal = ','\n"
        "encoding = 'cp1252'\n[tables.people]\nview = 'SELECT name FROM a'\n"
        "sources = { a = { file = 'a.csv', delimiter = ';', encoding = 'cp1252' } }\n"
        "budget = 1\nn_records_max = 9\nhalf_width = 1\n"
        "[tables.people.columns.name]\nkind = 'category'\nlevels_from = 'b.csv:name'\n"
    )
    settings = load(config)
    assert init.served() == {"name": 3}
    (table,) = load_public_tables(settings.public)
    assert table.data.to_pydict() == {"name": [CANARY, "Meyer"], "share": [0.5, 1.5]}
