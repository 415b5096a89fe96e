"""Reads statements about synthetic tables; the proxy carries them out.

    CREATE [OR REPLACE] SYNTHETIC TABLE name FROM table
        [WITH (epsilon => 1, method => 'pairwise', rows => 48842, seed => 7, columns => (age, sex))]
        [WITH (epsilon => 1, method => 'privbayes', score => 'R', degree => 3, hierarchies => true)]
        [WITH (.., method => 'privbayes', structure => 'votes', votes => 'one_each')]
        [WITH (.., holders => 'any')]
        [WITH (.., method => 'privbayes', theta => 4, structure_share => 0.3, groups => (p.region))]
        [WITH (epsilon => 1, target => income, workload => 'SELECT ..; SELECT ..', evaluate => .05)]
    DROP SYNTHETIC TABLE [IF EXISTS] [source.]name

Without an epsilon, a table is made from known answers at no cost. Other modules carry the statement
out: they know what a method does, which names are taken, and the names of columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidTarget
from cube.statistic import N_PARENTS_MAX
from planner.sql.messages import shortened
from planner.sql.words import StatementReader, is_name, whole_number

JOINED_BY = ("structure", "votes", "clip", "smoothing", "public_rows")  # of a federated table
OPTION_NAMES = (
    "epsilon",
    "delta",
    "method",
    "rows",
    "seed",
    "columns",
    "score",
    "degree",
    "hierarchies",
    "theta",
    "structure_share",
    "groups",
    *JOINED_BY,
    "holders",
    "target",
    "workload",
    "evaluate",
)
N_ROWS_WRITTEN_MAX = 2**62  # larger numbers are no numbers of rows anywhere
SEED_MAX = 2**63 - 1

_TEXTS = (TokenType.STRING, TokenType.HEREDOC_STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSynthetic:
    """A synthetic table to be made, as it was written.

    Parameters
    ----------
    name : str
        An identifier.
    table : str
        The table it is made of.
    is_replacing : bool
        Whether a synthetic table of that name gives way.
    epsilon : Fraction
        0 if none was named.
    delta : Fraction, optional
        With it, what is measured has Gaussian noise.
    method : str, optional
    n_rows, seed : int, optional
    columns : tuple of str
        Empty for every column.
    score : str, optional
    degree : int, optional
    hierarchies : bool, optional
    theta : Fraction, optional
    structure_share : Fraction, optional
    groups : tuple of str
        Columns of public tables, each with its table and a dot before it.
    structure, votes, clip, smoothing : str, optional
        How the answers of the holders of a federated table become one network.
    public_rows : int, optional
        How many rows these have, if that is public.
    holders : str, optional
        Which of them have to answer.
    target : tuple of str
        The columns that are to be learned from the others.
    workload : str, optional
        SELECTs on the table, separated by semicolons, that the rows are to answer well.
    evaluate : Fraction
        What a score of the finished table may cost beside `epsilon`; 0 if none was named.
    """

    name: str
    table: str
    is_replacing: bool = False
    epsilon: Fraction = Fraction(0)
    delta: Fraction | None = None
    method: str | None = None
    n_rows: int | None = None
    seed: int | None = None
    columns: tuple[str, ...] = ()
    score: str | None = None
    degree: int | None = None
    hierarchies: bool | None = None
    theta: Fraction | None = None
    structure_share: Fraction | None = None
    groups: tuple[str, ...] = ()
    structure: str | None = None
    votes: str | None = None
    clip: str | None = None
    smoothing: str | None = None
    public_rows: int | None = None
    holders: str | None = None
    target: tuple[str, ...] = ()
    workload: str | None = None
    evaluate: Fraction = Fraction(0)
    verb: ClassVar[str] = "CREATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSynthetic:
    """A synthetic table to be taken away; with `if_exists`, if it is there.

    With `source`, the one that belongs to the private table of that name.
    """

    name: str
    if_exists: bool = False
    source: str | None = None
    verb: ClassVar[str] = "DROP"

    @property
    def written(self) -> str:
        """The name as it was written, with the source before it if there was one."""
        return self.name if self.source is None else f"{self.source}.{self.name}"


SyntheticStatement: TypeAlias = CreateSynthetic | DropSynthetic
_Value: TypeAlias = Fraction | str | bool | tuple[str, ...]  # of an option


def read_synthetic(words: Sequence[Token]) -> SyntheticStatement | None:
    """The statement about a synthetic table; None if the words begin otherwise.

    Raises
    ------
    InvalidSql, InvalidTarget, TooLarge, UnsupportedSql
        If it is one, and is malformed, or a number in it is none or too long.
    """
    reader = _Reader(words)
    if reader.passed("CREATE", "OR", "REPLACE", "SYNTHETIC"):
        return reader.create(is_replacing=True)
    if reader.passed("CREATE", "SYNTHETIC"):
        return reader.create(is_replacing=False)
    if reader.passed("DROP", "SYNTHETIC"):
        return reader.drop()
    return None


class _Reader(StatementReader):
    """Reads a statement about a synthetic table."""

    example = "CREATE SYNTHETIC TABLE s FROM t WITH (epsilon => 1, columns => (a, b))"

    def create(self, *, is_replacing: bool) -> CreateSynthetic:
        self.expect("TABLE")
        name = self.new_name("table", "a synthetic table")
        self.expect("FROM")
        table = ".".join(self._dotted("a table"))
        found = self.options(OPTION_NAMES, self._value)
        self.expect_end()
        return _created(name, table, found, is_replacing=is_replacing)

    def drop(self) -> DropSynthetic:
        self.expect("TABLE")
        if_exists = self.passed("IF", "EXISTS")
        *source, name = self._dotted("a synthetic table")
        self.expect_end()
        return DropSynthetic(name=name, if_exists=if_exists, source=".".join(source) or None)

    def _value(self, option: str) -> _Value:
        match option:
            case "columns" | "target":
                return self._columns(needs_brackets=option == "columns")
            case "groups":
                return self._groups()
            case "workload":
                return self._text(option)
            case "method" | "score" | "structure" | "votes" | "clip" | "smoothing" | "holders":
                text = self.next_expected(f"a value of {option}").text
                return text.upper() if option == "score" else text.lower()
            case "hierarchies":
                return self.truth(option)
            case _:
                return self.number(option)

    def _text(self, name: str) -> str:
        word = self.next_expected("a text")
        if word.token_type not in _TEXTS:
            raise InvalidTarget(
                f"{name} must be a text between quotes, not {shortened(word.text)!a}.",
                hint="An example is workload => 'SELECT sex, COUNT(*) FROM t GROUP BY sex'.",
            )
        return word.text

    def _columns(self, *, needs_brackets: bool) -> tuple[str, ...]:
        if not needs_brackets and (self.ahead is None or is_name(self.ahead)):
            return (self.name("a column"),)
        self.expect("(")
        names = [self.name("a column")]
        while self.passed(","):
            names.append(self.name("a column"))
        self.expect(")")
        return tuple(names)

    def _groups(self) -> tuple[str, ...]:
        """Columns of public tables, each with its table before it."""
        is_listed = self.passed("(")
        names = [".".join(self._dotted("a column of a public table"))]
        while is_listed and self.passed(","):
            names.append(".".join(self._dotted("a column of a public table")))
        if is_listed:
            self.expect(")")
        return tuple(names)

    def _dotted(self, what: str) -> list[str]:
        """A name, and those after its dots: a private table's own may be ``orders.units``."""
        names = [self.name(what)]
        while self.passed("."):
            names.append(self.name(what))
        return names


def _created(
    name: str, table: str, found: dict[str, _Value], *, is_replacing: bool
) -> CreateSynthetic:
    """The statement, once its numbers are in range."""
    method, columns, target = found.get("method"), found.get("columns"), found.get("target")
    score, hierarchies = found.get("score"), found.get("hierarchies")
    workload, groups = found.get("workload"), found.get("groups")
    theta, share = found.get("theta"), found.get("structure_share")
    delta = found.get("delta")
    if isinstance(delta, Fraction) and not 0 < delta < 1:
        raise InvalidTarget(
            "delta must be a probability, far below one divided by the number of rows.",
            hint="An example is delta => 1e-9. Without delta, the guarantee holds with certainty.",
        )
    return CreateSynthetic(
        name=name,
        table=table,
        is_replacing=is_replacing,
        epsilon=_spending(
            "epsilon",
            found.get("epsilon"),
            "epsilon => 0 makes the table from known answers at no cost.",
        ),
        delta=delta if isinstance(delta, Fraction) else None,
        method=method if isinstance(method, str) else None,
        n_rows=whole_number("rows", found.get("rows"), 1, N_ROWS_WRITTEN_MAX),
        seed=whole_number("seed", found.get("seed"), 0, SEED_MAX),
        columns=columns if isinstance(columns, tuple) else (),
        score=score if isinstance(score, str) else None,
        degree=whole_number("degree", found.get("degree"), 0, N_PARENTS_MAX),
        hierarchies=hierarchies if isinstance(hierarchies, bool) else None,
        theta=theta if isinstance(theta, Fraction) else None,
        structure_share=share if isinstance(share, Fraction) else None,
        groups=groups if isinstance(groups, tuple) else (),
        structure=_text_of(found, "structure"),
        votes=_text_of(found, "votes"),
        clip=_text_of(found, "clip"),
        smoothing=_text_of(found, "smoothing"),
        public_rows=whole_number("public_rows", found.get("public_rows"), 1, N_ROWS_WRITTEN_MAX),
        holders=_text_of(found, "holders"),
        target=target if isinstance(target, tuple) else (),
        workload=workload if isinstance(workload, str) else None,
        evaluate=_spending(
            "evaluate", found.get("evaluate"), "evaluate => 0 buys no score of the table."
        ),
    )


def _text_of(found: dict[str, _Value], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None


def _spending(name: str, value: object, hint: str) -> Fraction:
    """What an option allows to be spent; 0 if it was left out."""
    if not isinstance(value, Fraction):
        return Fraction(0)
    if value < 0:
        raise InvalidTarget(f"{name} must not be negative.", hint=hint)
    return value
