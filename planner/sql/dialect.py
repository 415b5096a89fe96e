"""The SQL that Tacit reads: PostgreSQL's, and two additions.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 50, confidence => 0.95) ..
    EXPLAIN PRIVACY SELECT ..

The options are half_width, confidence, epsilon (a cap on the cost), simultaneous (how many answers
the confidence is to hold for at once), relative (the half-width as a fraction of the answer) and
at_least (what the answer is taken to be at least, with `relative`). Any SELECT may have them, and
the SELECTs inside it inherit them. What else OPTIONS may name is in `options`. `parse` turns text
into one `Statement` or a refusal; what the statement means is for later passes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, TooLarge, UnsupportedSql
from planner.sql.messages import position_at, shortened, unsupported
from planner.sql.names import CompanionColumn
from planner.sql.nodes import AS_WRITTEN, Held, PublicLookup
from planner.sql.options import MANNER, REQUESTED, Option, read_options

N_BYTES_MAX = 64 * 1024  # parsing is pure Python; a longer text would hold a worker for seconds
N_WORDS_MAX = 10_000  # planning is linear in these, some hundred microseconds for the worst of them
N_BRACKETS_MAX = 8  # the parser reads everything before one anew, to tell a list from a text
N_NESTED_MAX = 30  # the parser recurses some twenty frames for each level; Python allows a thousand

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
_DEEPER = dict.fromkeys(_OPENING, 1) | dict.fromkeys(_CLOSING, -1)
_SELECTING = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)


class PrivacyClause(exp.Expression):
    """``WITH DIFFERENTIAL_PRIVACY OPTIONS(..)``: the options as they were written."""

    arg_types: ClassVar[dict[str, bool]] = {"options": False}


class TacitParser(PostgresParser):
    """PostgreSQL's grammar, with the privacy clause where other dialects put a hint."""

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
        """PostgreSQL's words, except that EXPLAIN does not swallow the rest of the text."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: token for word, token in Postgres.Tokenizer.KEYWORDS.items() if word != "EXPLAIN"
        }

    class Generator(PostgresGenerator):
        """PostgreSQL's text; what planning put into a tree is shown as the analyst wrote it."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **PostgresGenerator.TRANSFORMS,
            exp.Median: lambda self, node: self.func("MEDIAN", node.this),
            exp.CountIf: lambda self, node: self.func("COUNT_IF", node.this),
            exp.Median: lambda self, node: self.func("MEDIAN", node.this),
            exp.StrPosition: lambda self, node: self.func("STRPOS", *node.iter_expressions()),
            Held: lambda _self, _node: "(SELECT ..)",
            CompanionColumn: lambda _self, node: str(node.args["text"]),
            PublicLookup: lambda _self, node: str(node.meta["text"]),
        }

        # Overridden by its name, as a transform could not leave other tables to the grammar.
        def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
            """A public table as it was written, whatever planning calls its relation."""
            as_written = expression.meta.get(AS_WRITTEN)
            return super().table_sql(expression, sep) if as_written is None else str(as_written)

    Parser = TacitParser


_TACIT = Tacit()  # settings alone: every text gets a tokenizer and a parser of its own


@dataclass(frozen=True, slots=True)
class Statement:
    """One parsed statement, and whether it is only to be explained.

    Every SELECT in it that has OPTIONS carries what they name in its meta data.
    `has_subqueries` says whether there is any query inside `tree`.
    """

    tree: exp.Query
    explain_only: bool
    has_subqueries: bool


def parse(sql: str) -> Statement:
    """One statement of the dialect.

    Raises
    ------
    InvalidSql
        If the text does not parse; the message says where.
    UnsupportedSql
        If it is several statements, or no query.
    TooLarge, InvalidTarget
        If the text is too long or nested too deeply; if an option is no number in range.
    """
    tokens = words_of(sql)
    _check_nesting(tokens)
    explain_only, tokens = _without_explain(tokens)
    if tokens[0].token_type not in _SELECTING:
        raise UnsupportedSql(
            f"Only SELECT is answered, not {shortened(tokens[0].text.upper())}.",
            hint="Begin with SELECT or WITH; tables are changed where the data are kept.",
        )
    trees = _trees(tokens, sql)
    if len(trees) != 1:
        raise UnsupportedSql(
            "One statement at a time is answered.", hint="Send the statements one by one."
        )
    tree = trees[0]
    while isinstance(tree, exp.Subquery) and tree.is_wrapper:
        tree = tree.this
    if not isinstance(tree, exp.Query):
        raise unsupported(tree, "is not a SELECT", "Write SELECT before it.")
    queries = list(tree.find_all(exp.Query))
    for select in queries:
        if isinstance(select, exp.Select):
            _take_options(select)
    return Statement(tree, explain_only, len(queries) > 1)


def words_of(sql: str) -> list[Token]:
    """The words and signs of one text, each with its line and column; no semicolons at its end.

    Raises
    ------
    InvalidSql, TooLarge
    """
    try:
        n_bytes = len(sql.encode())
    except UnicodeEncodeError:
        raise InvalidSql("The SQL text is not valid Unicode.", hint="Send it as UTF-8.") from None
    if n_bytes > N_BYTES_MAX:
        raise TooLarge(
            f"The SQL text has {n_bytes} bytes; {N_BYTES_MAX} are allowed.",
            hint="Replace long lists of values by ranges or expressions.",
        )
    if "\0" in sql:
        raise InvalidSql("The SQL text contains a NUL character.", hint="Remove it.")
    try:
        tokens = _TACIT.tokenize(sql)
    except TokenError as error:
        near = shortened(sql[error.start or 0 : (error.end or len(sql)) + 1])
        raise InvalidSql(
            f"The SQL cannot be read as words near {near}.",
            hint="A quote or comment may be left open.",
        ) from None
    if len(tokens) > N_WORDS_MAX:
        raise TooLarge(
            f"The SQL text has {len(tokens)} words and signs; {N_WORDS_MAX} are allowed.",
            hint="Replace long lists of values by ranges or expressions.",
        )
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise InvalidSql("There is no SQL statement in the text.", hint="Send a SELECT.")
    _place(tokens, sql)
    return tokens


def _place(tokens: Iterable[Token], sql: str) -> None:
    """Let every word know the line and column where it begins.

    sqlglot counts to where a word ends, and loses count after a dollar sign.
    """
    line, line_start, seen = 1, 0, 0
    for token in tokens:
        n_ended = sql.count("\n", seen, token.start)
        if n_ended:
            line, line_start = line + n_ended, sql.rfind("\n", seen, token.start) + 1
        seen = token.start
        token.line, token.col = line, token.start - line_start + 1


def _check_nesting(tokens: Iterable[Token]) -> None:
    depth = n_brackets = 0
    for token in tokens:
        n_brackets += token.token_type == TokenType.L_BRACKET
        if n_brackets > N_BRACKETS_MAX:
            raise TooLarge(
                f"The SQL has more than {N_BRACKETS_MAX} lists between [ and ].",
                hint="Lists are no part of what is answered: leave them out.",
                position=position_at(token.line, token.col),
            )
        depth += _DEEPER.get(token.token_type, 0)
        if depth > N_NESTED_MAX:
            raise TooLarge(
                f"The SQL is nested more than {N_NESTED_MAX} levels deep.",
                hint="Remove parentheses that are not needed.",
                position=position_at(token.line, token.col),
            )


def _without_explain(tokens: list[Token]) -> tuple[bool, list[Token]]:
    """Whether the statement is EXPLAIN PRIVACY, and the statement itself."""
    if tokens[0].text.upper() != "EXPLAIN" or tokens[0].token_type != TokenType.VAR:
        return False, tokens
    if len(tokens) == 1 or tokens[1].text.upper() != "PRIVACY":
        raise UnsupportedSql(
            "Plain EXPLAIN is not answered.", hint="Say EXPLAIN PRIVACY SELECT .. for the cost."
        )
    if len(tokens) <= len(("EXPLAIN", "PRIVACY")):
        raise InvalidSql("EXPLAIN PRIVACY is followed by nothing.", hint="Put a SELECT after it.")
    return True, tokens[2:]


def _trees(tokens: list[Token], sql: str) -> list[exp.Expr]:
    parser = TacitParser(error_level=ErrorLevel.IMMEDIATE, dialect=_TACIT)
    try:
        trees = parser.parse(tokens, sql)
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        raise InvalidSql(
            f"The SQL does not parse near {shortened(str(place['highlight']))}.",
            hint="It is read as PostgreSQL reads it.",
            position=position_at(place["line"], place["col"]),
        ) from None
    return [tree for tree in trees if tree is not None]


def _take_options(select: exp.Select) -> None:
    """Take the privacy clause off a SELECT, and leave what it names in its meta data."""
    hint = select.args.get("hint")
    if hint is not None:
        target, manner = read_options(hint.expressions[0].args["options"])
        select.meta[REQUESTED], select.meta[MANNER] = target, manner
        select.set("hint", None)
