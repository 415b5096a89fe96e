"""The statement that makes a synthetic table, written from Python values."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tacit_client.accuracy import exact_text


def create_statement(  # noqa: PLR0913 - the statement's options
    source: str,
    name: str,
    *,
    epsilon: float | Decimal | str,
    delta: float | Decimal | str | None,
    method: str | None,
    rows: int | None,
    seed: int | None,
    columns: Sequence[str],
    replace: bool,
    target: Sequence[str] = (),
    workload: str | None = None,
    evaluate: float | Decimal | str | None = None,
) -> str:
    """The statement.

    >>> asked = dict(delta=None, method=None, rows=None, seed=7, columns=("b",), replace=True)
    >>> create_statement("t", "s", epsilon=0.5, **asked)  # doctest: +NORMALIZE_WHITESPACE
    'CREATE OR REPLACE SYNTHETIC TABLE "s" FROM "t" WITH (epsilon => 0.5, seed => 7,
    columns => ("b"))'
    """
    options: dict[str, Any] = {
        "epsilon": exact_text(epsilon),
        "delta": None if delta is None else exact_text(delta),
        "method": None if method is None else _text(method),
        "rows": rows,
        "seed": seed,
        "columns": _list(columns),
        "target": _list(target),
        "workload": None if workload is None else _text(workload),
        "evaluate": None if evaluate is None else exact_text(evaluate),
    }
    given = [f"{option} => {value}" for option, value in options.items() if value is not None]
    create = "CREATE OR REPLACE" if replace else "CREATE"
    return (
        f"{create} SYNTHETIC TABLE {quoted(name)} FROM {quoted(source)} WITH ({', '.join(given)})"
    )


def _list(names: Sequence[str]) -> str | None:
    return f"({', '.join(map(quoted, names))})" if names else None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
