"""Answers, budgets and schemas for people (rich tables) and for programs (CSV, JSON).

What is left of a budget is one line, and fields of a JSON object. A budget that renews says until
when, and what was spent beyond its window; one that does not is told as ever.

Everything shown has left the server already; nothing here decides what may be shown, or asks a
server.
"""

import csv
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from proxy.cli.shared.client import ReceivedPrice, ReceivedResult
from proxy.protocol import tacit_pb2
from proxy.shared.renewal_text import a_window, renewal_words, this_window


def left_text(budget: tacit_pb2.Budget) -> str:
    """What is left for a table, on one line."""
    left = f"{budget.epsilon_left:.6g} of {budget.epsilon_limit:.6g} left"
    if not budget.HasField("renewal"):
        return f"{left} for {budget.table}"
    renewal = budget.renewal
    return f"{left} for {budget.table} {this_window(renewal.window)}; {renewal_text(renewal)}"


def after_cost(
    told: tacit_pb2.Receipt | tacit_pb2.ExplainReply | tacit_pb2.PreviewSyntheticReply,
) -> str:
    """What is left, after what is spent; nothing for a table without a budget."""
    return f"; {left_text(told.budget)}" if told.HasField("budget") else ""


def renewal_text(renewal: tacit_pb2.Renewal) -> str:
    """When a budget renews, and what was spent in a year and in all."""
    return renewal_words(renewal.renews_on, *_sums(renewal))


def left_fields(budget: tacit_pb2.Budget) -> dict[str, Any]:
    """What is left for a table, for a program."""
    told: dict[str, Any] = {"epsilon_left": budget.epsilon_left}
    if budget.HasField("renewal"):
        in_year, in_all = _sums(budget.renewal)
        told["renewal"] = {
            "window": budget.renewal.window,
            "renews_on": budget.renewal.renews_on,
            "epsilon_limit": budget.epsilon_limit,
            "epsilon_spent_in_year": in_year,
            "epsilon_spent_in_all": in_all,
        }
    return told


def _sums(renewal: tacit_pb2.Renewal) -> tuple[float | None, float | None]:
    """What was spent in the last twelve months, and in all; None for what may not be learnt."""
    return (
        renewal.epsilon_spent_in_year if renewal.HasField("epsilon_spent_in_year") else None,
        renewal.epsilon_spent_in_all if renewal.HasField("epsilon_spent_in_all") else None,
    )


DECIMALS_MAX = 6
FORMULA: Final = "=+-@\uff1d\uff0b\uff0d\uff20"  # and their wide forms
FORMULA_BLANKS: Final = frozenset("\t\r\n")
BLANKS: Final = " \t\r\n\u00a0"
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|-?inf|-\d{4,}-\d\d-\d\d")
BAR_LENGTH = 20


def answer_table(answer: ReceivedResult) -> RenderableType:
    """An answer with the interval of each of its columns, and its cost below."""
    shown = _grid()
    receipts = _receipts_by_place(answer)
    columns = []
    for place, field in enumerate(answer.data.schema):
        values = answer.data.column(place).to_pylist()
        receipt = receipts.get(place)
        shown.add_column(plain(field.name), justify="left" if _is_text(field) else "right")
        if receipt is None:
            columns.append([general(value) for value in values])
            continue
        shown.add_column(Text(f"{receipt.confidence:.10g} interval"), justify="right")
        shown.add_column(Text("source"))
        ends = list(zip(receipt.low, receipt.high, strict=True))
        columns.append(
            [to_width(value, low, high) for value, (low, high) in zip(values, ends, strict=True)]
        )
        columns.append([_interval(low, high) for low, high in ends])
        columns.append([receipt.source] * len(values))
    for row in zip(*columns, strict=True):
        shown.add_row(*map(plain, row))
    if answer.receipt is None:
        return shown
    spent = f"epsilon spent {answer.receipt.epsilon_spent:.6g}"
    notes = [plain(f"note: {note}") for note in answer.receipt.notes]
    return Group(shown, *notes, Text(spent + after_cost(answer.receipt)))


def explanation_table(price: ReceivedPrice[tacit_pb2.ExplainReply]) -> RenderableType:
    """What a statement would cost: one block of lines for each aggregate."""
    data, reply = price.data, price.reply
    shown = _grid()
    shown.show_header = False
    shown.add_column()
    for _ in range(data.num_rows):
        shown.add_column()
    for field, column in zip(data.schema, data.columns, strict=True):
        values = [general(value) for value in column.to_pylist()]
        shown.add_row(plain(field.name.replace("_", " ")), *map(plain, values))
    would_spend = f"would spend epsilon {reply.epsilon:.6g}"
    return Group(shown, Text(would_spend + after_cost(reply)))


def budgets_table(budgets: Iterable[tacit_pb2.Budget]) -> Table:
    """What is spent and what is left, one line per private table."""
    shown = _grid()
    for heading in ("table", "epsilon limit", "spent", "left", "measurements", ""):
        shown.add_column(heading, justify="left" if heading == "table" else "right")
    for budget in budgets:
        share = budget.epsilon_spent / budget.epsilon_limit if budget.epsilon_limit else 1.0
        filled = min(BAR_LENGTH, math.ceil(share * BAR_LENGTH))
        shown.add_row(
            plain(budget.table),
            f"{budget.epsilon_limit:.6g}",
            f"{budget.epsilon_spent:.6g}",
            f"{budget.epsilon_left:.6g}",
            str(budget.n_measurements),
            "█" * filled + "░" * (BAR_LENGTH - filled),
        )
    return shown


def renewals_text(budgets: Iterable[tacit_pb2.Budget]) -> str:
    """A line for each budget that renews: how often, when next, and what was spent in all."""
    return "\n".join(
        f"{plain(one.table)}: epsilon {one.epsilon_limit:.6g}{a_window(one.renewal.window)}, "
        f"{renewal_text(one.renewal)}"
        for one in budgets
        if one.HasField("renewal")
    )


def binding_table(budgets: Iterable[tacit_pb2.Budget]) -> Table | None:
    """The limits that bind the caller; None if there are none."""
    lines = []
    for budget in budgets:
        for one in budget.limits:
            names = ("epsilon_limit", "epsilon_spent", "epsilon_left", "per_query")
            numbers = [getattr(one, name) if one.HasField(name) else None for name in names]
            lines.append((budget.table, one.subject, one.window, numbers))
    return limits_table(lines) if lines else None


def limits_table(
    lines: Iterable[tuple[str, str, str, Iterable[Fraction | float | None]]],
) -> Table:
    """Limits, one line each: table, subject, window; the limit, what is spent, left, a query's."""
    shown = _grid()
    for heading in ("table", "for", "window", "epsilon", "spent", "left", "a query"):
        shown.add_column(heading)
    for table, subject, window, numbers in lines:
        texts = ("" if number is None else f"{float(number):.6g}" for number in numbers)
        shown.add_row(*map(plain, (table, subject, window, *texts)))
    return shown


def schema_table(table: tacit_pb2.Table) -> RenderableType:
    """The public columns of one private or synthetic table."""
    shown = _grid()
    for heading in ("column", "type", "kind", "levels", ""):
        shown.add_column(heading, justify="right" if heading == "levels" else "left")
    for column in table.columns:
        cells = (column.name, column.sql_type, column.kind, str(column.n_levels), column.levels)
        shown.add_row(*map(plain, cells))
    about = [plain(table.comment)] if table.comment else []
    if table.synthetic_of:
        made = plain(f"synthetic rows, made from {table.synthetic_of}; any SQL on them is free")
        return Group(plain(table.name), shown, made)
    if not table.default_half_width:
        free = Text("answers by itself: what it answers is free")
        return Group(plain(table.name), shown, *about, free)
    target = f"{table.default_half_width:g} at confidence {table.default_confidence:g}"
    narrowest = Text(f"default target: half_width {target}")
    if table.default_cost:
        cost = float(Fraction(table.default_cost))
        narrowest.append(f", as far as epsilon {cost:g} pays for it")
    return Group(plain(table.name), shown, *about, narrowest)


def answer_csv(answer: ReceivedResult, *, is_for_spreadsheets: bool = False) -> str:
    """The result as CSV; every answer column is followed by the ends of its interval."""
    receipts = _receipts_by_place(answer)
    header: list[str] = []
    columns: list[Sequence[Any]] = []
    for place, field in enumerate(answer.data.schema):
        header.append(field.name)
        columns.append(answer.data.column(place).to_pylist())
        if (receipt := receipts.get(place)) is not None:
            header += [f"{field.name}_low", f"{field.name}_high"]
            columns += [_ends(receipt.low), _ends(receipt.high)]
    return _csv(header, columns, is_for_spreadsheets=is_for_spreadsheets)


def price_csv(price: ReceivedPrice[Any], *, is_for_spreadsheets: bool = False) -> str:
    """What statements cost as CSV: the lines of the table."""
    columns = [column.to_pylist() for column in price.data.columns]
    return _csv(price.data.schema.names, columns, is_for_spreadsheets=is_for_spreadsheets)


def price_json(price: ReceivedPrice[Any]) -> str:
    """What statements cost as one JSON object, with the total."""
    rows = zip(*(column.to_pylist() for column in price.data.columns), strict=True)
    shown: dict[str, Any] = {
        "columns": price.data.schema.names,
        "rows": [list(map(_finite, row)) for row in rows],
        "epsilon": price.reply.epsilon,
    }
    if price.reply.HasField("budget"):
        shown["table"] = price.reply.budget.table
        shown |= left_fields(price.reply.budget)
    if isinstance(price.reply, tacit_pb2.PlanReply):
        shown["n_measurements"] = price.reply.n_measurements
        shown["bought"] = price.reply.bought
        shown["notes"] = list(price.reply.notes)
    return json.dumps(shown, default=str, ensure_ascii=False)


def answer_json(answer: ReceivedResult) -> str:
    """The result with its receipt, as one JSON object."""
    rows = zip(*(column.to_pylist() for column in answer.data.columns), strict=True)
    shown: dict[str, Any] = {
        "columns": answer.data.schema.names,
        "rows": [list(row) for row in rows],
    }
    if (receipt := answer.receipt) is not None:
        shown["table"] = receipt.table
        shown["epsilon_spent"] = receipt.epsilon_spent
        shown |= left_fields(receipt.budget) if receipt.HasField("budget") else {}
        shown["answers"] = [
            {
                "name": column.name,
                "confidence": column.confidence,
                "epsilon_spent": column.epsilon_spent,
                "source": column.source,
                "low": _ends(column.low),
                "high": _ends(column.high),
            }
            for column in receipt.columns
        ]
        shown["notes"] = list(receipt.notes)
    return json.dumps(shown, default=str, ensure_ascii=False)


def to_width(value: float | None, low: float, high: float) -> str:
    """A number with the digits that are meaningful for an interval of this width.

    >>> to_width(7431.26, 7331.26, 7531.26), to_width(0.51234, 0.5, 0.53), to_width(7.0, 7.0, 7.0)
    ('7431', '0.512', '7')
    """
    if value is None or not math.isfinite(value):
        return general(value)
    half_width = (high - low) / 2
    if not math.isfinite(half_width) or half_width <= 0:
        return f"{value:.10g}"
    decimals = min(DECIMALS_MAX, max(0, 1 - math.floor(math.log10(half_width))))
    rounded = round(value, decimals) + 0.0  # never "-0"
    return f"{rounded:.{decimals}f}"


def general(value: Any) -> str:
    """Any value of a result as short text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def plain(text: str) -> Text:
    """Text without markup and without terminal control characters."""
    return Text("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))


def _interval(low: float, high: float) -> str:
    """An interval as text; an answer that was clipped for consistency has none."""
    if math.isnan(low):
        return "none"
    return f"[{to_width(low, low, high)}, {to_width(high, low, high)}]"


def _ends(values: Iterable[float]) -> list[float | None]:
    """Ends of intervals for programs: null where there is none."""
    return [None if math.isnan(value) else value for value in values]


def _receipts_by_place(answer: ReceivedResult) -> dict[int, tacit_pb2.ColumnReceipt]:
    """The receipt of each answer column. Names may repeat; then both lists keep their order."""
    waiting = [] if answer.receipt is None else list(answer.receipt.columns)
    found: dict[int, tacit_pb2.ColumnReceipt] = {}
    for place, name in enumerate(answer.data.schema.names):
        match = next((receipt for receipt in waiting if receipt.name == name), None)
        if match is not None and len(match.low) == answer.data.num_rows:
            waiting.remove(match)
            found[place] = match
    return found


def no_formula(field: str) -> str:
    """A field that a spreadsheet shows, and does not calculate.

    >>> no_formula("=1+1"), no_formula("-412.5"), no_formula(" @SUM(A1)"), no_formula("Oslo")
    ("'=1+1", '-412.5', "' @SUM(A1)", 'Oslo')
    """
    begins = field.lstrip(BLANKS)[:1]
    is_formula = field[:1] in FORMULA_BLANKS or (begins and begins in FORMULA)
    return f"'{field}" if is_formula and not NUMBER.fullmatch(field) else field


def print_text(text: str) -> None:
    """Print CSV or JSON: as it is to a file or a program, and with its controls shown to people."""
    typer.echo(for_terminal(text) if sys.stdout.isatty() else text, nl=False)


def for_terminal(text: str) -> str:
    r"""Text that moves no cursor and changes no colour: all but line ends is shown.

    >>> for_terminal("a\x1b[31m\n\x9b\u202eb")
    'a\\u001b[31m\n\\u009b\\u202eb'
    """
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def _csv(
    header: Sequence[str], columns: Iterable[Sequence[Any]], *, is_for_spreadsheets: bool
) -> str:
    """CSV; for spreadsheets, no text in it is taken for a formula, and numbers stay numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in (header, *zip(*columns, strict=True)):
        writer.writerow(
            [
                no_formula(one) if is_for_spreadsheets and isinstance(one, str) else one
                for one in row
            ]
        )
    return out.getvalue()


def _finite(value: Any) -> Any:
    """A value as JSON has it, which has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _grid() -> Table:
    return Table(header_style="bold")


def _is_text(field: pa.Field) -> bool:
    return bool(pa.types.is_string(field.type))


def console() -> Console:
    """Standard output; wide enough not to cut a table when it is piped."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=200)
