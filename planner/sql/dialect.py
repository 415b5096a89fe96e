"""The SQL that Tacit reads: PostgreSQL's, and two additions.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 50, confidence => 0.95) ..
    EXPLAIN PRIVACY SELECT ..

The options are half_width, confidence, epsilon (a cap on the cost), simultaneous (how many answers
the confidence is to hold for at once), relative (the half-width as a fraction of the answer) and
at_least (what the answer is taken to be at least, with `relative`). Any SELECT may have them, and
the SELECTs inside it inherit them. What else OPTIONS may name is in `options`. Here are the words
and the grammar alone: `words` cuts texts, `statements` tells statements apart, and `query_tree`
parses queries.
"""

from collections.abc import Callable
from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from planner.sql.date_functions import DATE_FUNCTIONS, IS_DOUBLE, PLACES
from planner.sql.date_texts import DATE_TEXTS
from planner.sql.names import CompanionColumn
from planner.sql.nodes import AS_WRITTEN, WRITTEN_FOR, Held, PublicLookup, Written
from planner.sql.options import Option

_FIELDS: Final = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


class PrivacyClause(exp.Expression):
    """``WITH DIFFERENTIAL_PRIVACY OPTIONS(..)``: the options as they were written."""

    arg_types: ClassVar[dict[str, bool]] = {"options": False}


class TacitParser(PostgresParser):
    """PostgreSQL's grammar, with the privacy clause where other dialects put a hint."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **PostgresParser.FUNCTIONS,
        **DATE_FUNCTIONS,
        **DATE_TEXTS,
        "LISTAGG": exp.GroupConcat.from_arg_list,
    }

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        **PostgresParser.FUNCTION_PARSERS,
        "DATE_PART": lambda self: self._parse_date_part(),
    }

    # Overridden by its name: "AS OF" and a moment, which other dialects write with FOR SYSTEM_TIME.
    def _parse_version(self) -> exp.Version | None:
        moments = {TokenType.STRING, TokenType.NUMBER, TokenType.DATE, TokenType.TIMESTAMP}
        after = self._tokens[self._index + 2 : self._index + 3]
        if after and after[0].token_type in moments and self._match_text_seq("AS", "OF"):
            return self.expression(
                exp.Version(this="TIMESTAMP", expression=self._parse_bitwise(), kind="AS OF")
            )
        return super()._parse_version()

    # Overridden by its name: the base grammar takes a text apart, and loses signs and clocks.
    def _parse_date_part(self) -> exp.Expr:
        """DATE_PART, a double where EXTRACT is a NUMERIC."""
        found = super()._parse_date_part()
        found.meta[IS_DOUBLE] = True
        return found

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        index = self._index
        if self._match(TokenType.INTERVAL):
            places = self._parse_places()
            if self._match(TokenType.STRING):
                text = exp.Literal.string(self._prev.text).update_positions(self._prev)
                unit, in_unit = self._parse_fields()
                interval = exp.Interval(this=text, unit=unit)
                interval.meta[PLACES] = places if in_unit is None else in_unit
                return interval
            self._retreat(index)
        return super()._parse_interval(require_interval, parse_function_unit)

    def _parse_places(self) -> int | None:
        """``(3)``, behind INTERVAL or SECOND."""
        words = [word.token_type for word in self._tokens[self._index : self._index + 3]]
        if words != [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]:
            return None
        places = int(self._tokens[self._index + 1].text)
        self._advance(3)
        return places

    def _parse_fields(self) -> tuple[exp.Expr | None, int | None]:
        """``MONTH``, ``YEAR TO MONTH`` or ``SECOND(3)``, behind an interval's text."""
        found: list[exp.Expr] = []
        places = None
        while self._curr and self._curr.text.upper() in _FIELDS and len(found) < 2:  # noqa: PLR2004
            found.append(exp.var(self._curr.text.upper()))
            self._advance()
            places = self._parse_places()
            if not self._match_text_seq("TO"):
                break
        if len(found) < 2:  # noqa: PLR2004 - the first, and perhaps the last
            return (found[0] if found else None), places
        return exp.IntervalSpan(this=found[0], expression=found[1]), places

    # Overridden by its name: right after SELECT is where the base grammar looks for optional hints.
    def _parse_hint(self) -> exp.Hint | None:
        if not self._match_text_seq("WITH", "DIFFERENTIAL_PRIVACY"):
            return None
        options: list[Option] = []
        if self._match_text_seq("OPTIONS"):
            self._match_l_paren()
            while not self._match(TokenType.R_PAREN):
                if options and not self._match(TokenType.COMMA):
                    self.raise_error("a comma is missing")
                options.append(self._parse_option())
        clause = PrivacyClause()
        clause.args["options"] = tuple(options)
        return exp.Hint(expressions=[clause])

    def _parse_option(self) -> Option:
        if not self._curr or not self._next:
            self.raise_error("an option is missing")
        name = self._curr.text.lower()
        self._advance()
        if not (self._match(TokenType.FARROW) or self._match(TokenType.EQ)):
            self.raise_error("an option is name => value")
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self.raise_error("an option's value is missing")
        option = Option(
            name, sign + self._curr.text, is_number=self._curr.token_type == TokenType.NUMBER
        )
        self._advance()
        return option


class Tacit(Postgres):
    """The dialect, known to sqlglot as ``tacit``."""

    # `/` divides exactly whatever its operands are: answers are real numbers, and the scratchpad
    # that evaluates the rest divides the same way.
    TYPED_DIVISION = False

    class Tokenizer(Postgres.Tokenizer):
        """PostgreSQL's words, except that none of them swallows the rest of a statement."""

        COMMANDS: ClassVar[set[TokenType]] = set()

        # "$2,$3" would else be read as the beginning of a text between dollar signs.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{w: kind for w, kind in Postgres.Tokenizer.KEYWORDS.items() if w != "EXPLAIN"},
            **{f"${digit}": TokenType.NUMBER for digit in range(10)},
        }

    class Generator(PostgresGenerator):
        """PostgreSQL's text; what planning put into a tree is shown as the analyst wrote it."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **PostgresGenerator.TRANSFORMS,
            exp.CountIf: lambda self, node: self.func("COUNT_IF", node.this),
            exp.Median: lambda self, node: self.func("MEDIAN", node.this),
            exp.StrPosition: lambda self, node: self.func("STRPOS", *node.iter_expressions()),
            Held: lambda _self, _node: "(SELECT ..)",
            CompanionColumn: lambda _self, node: str(node.args["text"]),
            Written: lambda self, node: self.sql(node.meta[WRITTEN_FOR]),
            PublicLookup: lambda _self, node: str(node.meta["text"]),
        }

        # Overridden by its name, as a transform could not leave other tables to the grammar.
        def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
            """A public table as it was written, whatever planning calls its relation."""
            as_written = expression.meta.get(AS_WRITTEN)
            return super().table_sql(expression, sep) if as_written is None else str(as_written)

    Parser = TacitParser


TACIT: Final = Tacit()  # settings alone: every text gets a tokenizer and a parser of its own
