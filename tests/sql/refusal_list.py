"""The list of all refusals, as Markdown: `python -m tests.sql.refusal_list`.

What the SQL fixtures reach is shown by example, with the words that are said and a statement that
works. What no fixture reaches is found by reading the source: its words, with names between angle
brackets for what they are filled with; words that are made of numbers, by making them of such
names. A configuration that is rejected is no refusal, and not here.
"""

import ast
import importlib
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Self

from accountant.noise.lattice_noise import SystemNoise
from cube import refusals
from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    FreeWidth,
    GenerationOver,
    LimitReached,
    NotCovered,
    Refused,
    Shortfall,
    TargetNotReached,
    TooLarge,
    UnsupportedSql,
)
from planner.sql.messages import shortened
from proxy.api.requests import QueryRequest
from tests.sql import world
from tests.sql.cases import cases, request
from tests.sql.test_refused import ALL, LONG
from tests.support.fakes import KnownTable

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("accountant", "cube", "inference", "planner", "proxy")
WIDTH = 96
LENGTH_MAX = 1000  # of SQL; what is refused for its length is cut

CLASSES: dict[str, type[Refused]] = {
    name: found
    for name, found in vars(refusals).items()
    if isinstance(found, type) and issubclass(found, Refused) and found not in {Refused, NotCovered}
}
# Of classes with one code, the widest.
BY_CODE = [
    kind
    for kind in CLASSES.values()
    if all(kind.code != wider.__dict__.get("code") for wider in kind.__mro__[1:])
]
# Numbers that stand for a name, and the name.
NEEDED, LEFT, WIDTH_FREE = 700700, 600600, 500500
NAMES = {str(NEEDED): "epsilon_needed", str(LEFT): "epsilon_left", str(WIDTH_FREE): "half_width"}

INTRODUCTION = """\
# Refusals

A request that is not answered ends in one sentence: what is wrong, where it stands in the text, and
what works instead. Clients get it as `[code] sentence`. Codes are stable; sentences are for people.
Programs read the numbers and the place that a sentence names beside it: [errors.md](../errors.md).

A refusal follows from the request, public declarations, the history of noisy answers and the budget
alone, so it says nothing of the data. It costs nothing, with one exception: before
`target_not_reached`, something may have been charged, and its sentence says so.

Lines and columns count from 1, after any SETs before the statement, and say where the first name,
literal or function of what is refused stands. There are none for what has no place of its own.

What a budget, a limit or a cap does not cover comes with the half-widths that could be had instead,
as in `Free right now: half_width 40. What is left pays for: half_width 25.`, if they are found
within a second. They are left out below.

Each example is a statement that is refused, what is said of it, and one that works. Their private
table is `patients`, about persons told apart by `{unit}`, and their public tables are `cities` and
`holidays`. The columns of `patients` are
{columns}.

This page is printed by `python -m tests.sql.refusal_list` whenever the site is built.
"""


class Example(NamedTuple):
    """A statement that is refused, and one that works."""

    title: str
    sql: str
    refusal: Refused
    works: str


class Template(NamedTuple):
    """The words of one refusal as the source has them."""

    code: str
    message: str
    hint: str
    pattern: re.Pattern[str]


def examples() -> list[Example]:
    """All SQL cases that are refused, asked of one engine."""
    asked = [
        (case.name.replace("_", " "), case.sql, request(case), case.headers["works"])
        for case in cases("refused")
    ]
    for what, (code, sql) in LONG.items():
        title = f"too many {what}" if code == TooLarge.code else what
        asked.append((title, sql, QueryRequest(sql=sql), ALL))
    found = []
    source = KnownTable(world.SCHEMA, world.positions())
    with (
        tempfile.TemporaryDirectory() as folder,
        world.patients_engine(Path(folder), source, SystemNoise()) as engine,
    ):
        for title, sql, one, works in asked:
            try:
                engine.answer(one)
            except NotCovered as refusal:  # what could be asked instead is found in time, or not
                plain = type(refusal)(refusal.shortfall.unadvised)
                found.append(Example(title, sql, plain, works))
            except Refused as refusal:
                found.append(Example(title, sql, refusal, works))
            else:
                raise ValueError(f"{title} is answered")
    return found


def templates() -> Iterator[Template]:
    """The words of every refusal in the source, but of those that pass on what another said."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if "_pb2" in name or name == "cube.refusals":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield from template(node, name)


def template(call: ast.Call, module: str) -> Iterator[Template]:
    """The words of one call, if it makes a refusal of its own words."""
    name = getattr(call.func, "id", None)
    if name == "unsupported":
        kind: type[Refused] = UnsupportedSql
        words, hint = call.args[1], call.args[2]
    elif name in CLASSES and call.args:
        kind, words = CLASSES[name], call.args[0]
        hint = next((one.value for one in call.keywords if one.arg == "hint"), ast.Constant(""))
    else:
        return
    names = importlib.import_module(module)
    pieces = _pieces(words, names)
    if name == "unsupported":
        pieces = [_Filled("node"), " ", *pieces, "."]
    if any(not isinstance(p, _Filled) and re.search(r"\w", p) for p in pieces):
        pattern = "".join(".*" if isinstance(p, _Filled) else re.escape(p) for p in pieces)
        yield Template(
            kind.code, "".join(pieces), "".join(_pieces(hint, names)), re.compile(pattern)
        )


def numbered() -> Iterator[Template]:
    """The words of every refusal that is made of numbers."""
    plain = Shortfall(table="<table>", epsilon_needed=Fraction(NEEDED), epsilon_left=Fraction(LEFT))
    limit = replace(plain, account="<account>", window="<window>")
    hidden = replace(plain, epsilon_left=None)
    synthetic = replace(plain, is_synthetic=True)
    yield from map(_template_of, map(BudgetExhausted, (plain, hidden, synthetic)))
    yield from map(_template_of, map(LimitReached, (limit, hidden)))
    yield from map(_template_of, map(CostAboveCap, (plain, synthetic)))
    yield _template_of(GenerationOver(plain))
    widths = [FreeWidth("<answer>", WIDTH_FREE)]
    because = Refused("<why>")
    yield _template_of(TargetNotReached(epsilon_spent=Fraction(0), free=widths, because=because))


def _template_of(refusal: Refused) -> Template:
    message, hint = refusal.message, refusal.hint or ""
    for number, name in NAMES.items():
        message, hint = message.replace(number, f"<{name}>"), hint.replace(number, f"<{name}>")
    pieces = re.split(r"<\w+>", message)
    pattern = re.compile(".*".join(map(re.escape, pieces)))
    return Template(refusal.code, message, hint, pattern)


class _Filled(str):
    """What a message is filled with, as a name between angle brackets."""

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        return super().__new__(cls, f"<{name}>")


def _pieces(words: ast.expr, names: ModuleType) -> list[str]:
    """Parts of a text as they stand in the source, and what is filled in between them."""
    if isinstance(words, ast.JoinedStr):
        return [piece for value in words.values for piece in _pieces(value, names)]
    if isinstance(words, ast.FormattedValue):
        words = words.value
    if isinstance(words, ast.Constant):
        return [str(words.value)]
    if isinstance(words, ast.Name) and words.id.isupper():
        return [str(getattr(names, words.id))]
    return [_Filled(_name(words))]


def _name(filled: ast.expr) -> str:
    """What to call an expression: its variable or attribute, or that of its first argument."""
    while isinstance(filled, ast.Call) and filled.args:
        filled = filled.args[0]
    if isinstance(filled, ast.Name | ast.Attribute):
        return filled.id if isinstance(filled, ast.Name) else filled.attr
    return ".."


def document() -> str:
    """The page."""
    shown = examples()
    said = [(one.refusal.code, one.refusal.message) for one in shown]
    elsewhere = {
        one
        for one in (*templates(), *numbered())
        if not any(code == one.code and one.pattern.fullmatch(text) for code, text in said)
    }
    lines = [
        INTRODUCTION.format(
            columns=", ".join(f"`{axis.name}`" for axis in world.SCHEMA.axes), unit=world.UNIT
        ),
        *_index(),
    ]
    for kind in BY_CODE:
        meaning = (kind.__doc__ or "").partition("Parameters\n")[0]
        lines += ["", f"## {kind.code}", "", " ".join(meaning.split())]
        for one in shown:
            if one.refusal.code == kind.code:
                lines += ["", f"**{one.title[0].upper()}{one.title[1:]}**", "", *_example(one)]
        words = sorted({f"{t.message} {t.hint}".strip() for t in elsewhere if t.code == kind.code})
        if words:
            lines += ["", "Where no example reaches:", "", "```text", *words, "```"]
    return "\n".join(lines) + "\n"


def _index() -> list[str]:
    rows = [
        f"| [`{kind.code}`](#{kind.code}) | {(kind.__doc__ or '').splitlines()[0]} |"
        for kind in BY_CODE
    ]
    return ["| code | |", "|---|---|", *rows]


def _example(one: Example) -> list[str]:
    sql = one.sql if len(one.sql) <= LENGTH_MAX else shortened(one.sql)
    if not "".join(sql.split()).isprintable():
        sql = sql.encode("unicode_escape").decode()
    said = textwrap.wrap(one.refusal.explain(), WIDTH, break_on_hyphens=False)
    return ["```sql", sql, *(f"-- {line}" for line in said), one.works, "```"]


if __name__ == "__main__":
    sys.stdout.write(document())
