"""Completion at the prompt of `tacit query`: words of SQL, tables, columns, and its own commands.

Names come from the catalog, which holds what the caller may know of; nothing here asks a server.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

KEYWORDS: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "AS", "AND", "OR"),
    *("NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "DESC"),
    *("JOIN", "LEFT JOIN", "USING", "ON", "WITH", "UNION ALL", "CUBE", "ROLLUP", "DISTINCT"),
    *("COUNT(*)", "COUNT", "SUM", "AVG", "MIN", "MAX", "VARIANCE", "STDDEV", "MEDIAN"),
    *("EXPLAIN PRIVACY", "SHOW TABLES", "DESCRIBE", "SET", "RESET", "CREATE SYNTHETIC TABLE"),
    *("WITH DIFFERENTIAL_PRIVACY OPTIONS", "DP_INTERVAL_LOW", "DP_INTERVAL_HIGH", "DP_SOURCE"),
)
WORD: Final = re.compile(r"[\\\w.]*$")
ALIASED: Final = re.compile(r"(?=\b(\w+)(?:\s+AS)?\s+(\w+)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that SQL may use.

    Parameters
    ----------
    columns : mapping of str to tuple of str
        The columns of each table; a table that is not in the schema ``public`` has its schema's
        name before it.
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, table: str, text: str) -> tuple[str, ...]:
        """The columns of a table, by its name or by what a text calls it."""
        if table in self.columns:
            return self.columns[table]
        for name, alias in ALIASED.findall(text):
            if alias == table and name in self.columns:
                return self.columns[name]
        return ()

    def named_in(self, text: str) -> list[str]:
        """The columns of the tables that a text names; of all tables if it names none."""
        words = set(re.findall(r"[\w.]+", text))
        tables = [table for table in self.columns if table in words] or list(self.columns)
        return sorted({column for table in tables for column in self.columns[table]})


class PromptCompleter(Completer):
    """Completes the word before the cursor.

    Parameters
    ----------
    commands : mapping of str to tuple of str
        The prompt's own commands, and the words that each takes; none for those that take a table
        or a statement.
    """

    def __init__(self, commands: Mapping[str, tuple[str, ...]]) -> None:
        self.names = Names()
        self._commands = commands

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the library names it
    ) -> Iterator[Completion]:
        """What the word before the cursor may become."""
        before = document.text_before_cursor
        found = WORD.search(before)
        word = "" if found is None else found[0]
        for text in self._candidates(before, word, document.text):
            if text.casefold().startswith(word.casefold()) and text != word:
                yield Completion(text, start_position=-len(word))

    def _candidates(self, before: str, word: str, text: str) -> Iterable[str]:
        begins = before[: len(before) - len(word)].split()
        if word.startswith("\\") or (begins and begins[0].startswith("\\")):
            return self._after_command(begins)
        table, dot, _ = word.rpartition(".")
        columns = [f"{table}.{name}" for name in self.names.of(table, text)] if dot else []
        if columns or not word:
            return columns or [*self.names.columns, *self.names.named_in(text)]
        return [*self.names.named_in(text), *self.names.columns, *KEYWORDS]

    def _after_command(self, begins: list[str]) -> Iterable[str]:
        if not begins:
            return self._commands
        words = self._commands.get(begins[0], ())
        if words:
            return words if len(begins) == 1 else ()
        return [*self.names.columns, *self.names.named_in(" ".join(begins)), *KEYWORDS]
