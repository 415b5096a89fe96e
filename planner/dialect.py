"""The SQL that Tacit reads: PostgreSQL's, and two additions.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 50, confidence => 0.95) ..
    EXPLAIN PRIVACY SELECT ..

The options are half_width, confidence, epsilon (a cap on the cost) and simultaneous (how many
answers the confidence is to hold for at once). `parse` turns text into one `Statement` or a
refusal; what the statement means is for later passes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, InvalidTarget, TooLarge, UnsupportedSql
from planner.exact import exact_number
from planner.wording import shortened, suggestion
from planner.workload import RequestedTarget

N_BYTES_MAX = 64 * 1024  # parsing is pure Python; a longer text would hold a worker for seconds
N_WORDS_MAX = 10_000  # planning is linear in these, some hundred microseconds for the worst of them
N_NESTED_MAX = 30  # the parser recurses some twenty frames for each level; Python allows a thousand

OPTION_NAMES = ("half_width", "confidence", "epsilon", "simultaneous")
N_SIMULTANEOUS_MAX = 1_000_000

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
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
        options: list[tuple[str, str]] = []
        if self._match_text_seq("OPTIONS"):
            self._match_l_paren()
            while not self._match(TokenType.R_PAREN):
                if options and not self._match(TokenType.COMMA):
                    self.raise_error("a comma is missing")
                options.append(self._parse_option())
        clause = PrivacyClause()
        clause.args["options"] = tuple(options)
        return exp.Hint(expressions=[clause])

    def _parse_option(self) -> tuple[str, str]:
        """One ``name => number``; the number stays text, because epsilon is exact."""
        if not self._curr or not self._next:
            self.raise_error("an option is missing")
        name = self._curr.text.lower()
        self._advance()
        if not (self._match(TokenType.FARROW) or self._match(TokenType.EQ)):
            self.raise_error("an option is name => value")
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self.raise_error("an option's value is missing")
        value = sign + self._curr.text
        is_number = self._curr.token_type == TokenType.NUMBER
        self._advance()
        if not is_number:
            raise InvalidTarget(f"{shortened(name)} must be a number, not {shortened(value)}.")
        return name, value


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

    Parser = TacitParser


@dataclass(frozen=True, slots=True)
class Statement:
    """One parsed statement, what its OPTIONS ask for, and whether it is only to be explained."""

    select: exp.Expr
    requested: RequestedTarget
    explain_only: bool


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
    tokens = _tokens(sql)
    _check_nesting(tokens)
    explain_only, tokens = _without_explain(tokens)
    if tokens[0].token_type not in _SELECTING:
        raise UnsupportedSql(
            f"Only SELECT is answered, not {shortened(tokens[0].text.upper())}.",
        )
    trees = _trees(tokens, sql)
    if len(trees) != 1:
        raise UnsupportedSql(
            "One statement at a time is answered.", hint="Send the statements one by one."
        )
    tree = trees[0]
    while isinstance(tree, exp.Subquery) and tree.is_wrapper:
        tree = tree.this
    return Statement(tree, _requested(tree), explain_only)


def _tokens(sql: str) -> list[Token]:
    try:
        n_bytes = len(sql.encode())
    except UnicodeEncodeError:
        raise InvalidSql("The SQL text is not valid Unicode.") from None
    if n_bytes > N_BYTES_MAX:
        raise TooLarge(
            f"The SQL text has {n_bytes} bytes; {N_BYTES_MAX} are allowed.",
            hint="Replace long lists of values by ranges or expressions.",
        )
    if "\0" in sql:
        raise InvalidSql("The SQL text contains a NUL character.")
    try:
        tokens = Tacit().tokenize(sql)
    except TokenError as error:
        near = shortened(sql[error.start or 0 : error.end or len(sql)])
        raise InvalidSql(
            f"The SQL cannot be read as words near: {near}",
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
        raise InvalidSql("There is no SQL statement in the text.")
    return tokens


def _check_nesting(tokens: Iterable[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > N_NESTED_MAX:
            raise TooLarge(
                f"The SQL is nested more than {N_NESTED_MAX} levels deep "
                f"at line {token.line}, column {token.col}.",
                hint="Remove parentheses that are not needed.",
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
        raise InvalidSql("EXPLAIN PRIVACY is followed by nothing.")
    return True, tokens[2:]


def _trees(tokens: list[Token], sql: str) -> list[exp.Expr]:
    parser = TacitParser(error_level=ErrorLevel.IMMEDIATE, dialect=Tacit())
    try:
        trees = parser.parse(tokens, sql)
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        near = shortened(str(place.get("highlight") or "the end"))
        raise InvalidSql(
            f"The SQL does not parse at line {place.get('line')}, column {place.get('col')}, "
            f"near {near}."
        ) from None
    return [tree for tree in trees if tree is not None]


def _requested(tree: exp.Expr) -> RequestedTarget:
    """The target named in OPTIONS, which is taken off the tree."""
    hint = tree.args.get("hint")
    if hint is None:
        return RequestedTarget()
    named: dict[str, Fraction] = {}
    for name, text in hint.expressions[0].args["options"]:
        if name not in OPTION_NAMES:
            raise InvalidTarget(
                f"OPTIONS has no {shortened(name)}.",
                hint=suggestion(name, OPTION_NAMES) or f"It has {', '.join(OPTION_NAMES)}.",
            )
        if name in named:
            raise InvalidTarget(f"OPTIONS names {name} twice.")
        magnitude = exact_number(text.removeprefix("-"))
        named[name] = -magnitude if text.startswith("-") else magnitude
    tree.set("hint", None)
    half_width, confidence = named.get("half_width"), named.get("confidence")
    return RequestedTarget(
        half_width=None if half_width is None else float(half_width),
        confidence=None if confidence is None else float(confidence),
        epsilon_cap=named.get("epsilon"),
        simultaneous=_simultaneous(named.get("simultaneous")),
    )


def _simultaneous(named: Fraction | None) -> int | None:
    if named is None:
        return None
    if named.denominator != 1 or not 1 <= named <= N_SIMULTANEOUS_MAX:
        raise InvalidTarget(
            f"simultaneous is a whole number of answers, from 1 to {N_SIMULTANEOUS_MAX}.",
            hint="Name how many answers you will look at together, such as the groups of a query.",
        )
    return int(named)
