"""Networks as people exchange them: read from a text, and the tables of their pairs of columns.

A network comes from `tacit network learn`, from a repository of published networks, or from a list
of arcs that somebody wrote down. Its graph is always there, its laws only where the text has them.
Levels are matched by their names, since two texts may list them in different orders. Nothing is
learned here, and no private row is read.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from synthesis.networks import Arc, Dag
from synthesis.privbayes import Attribute, BayesianNetwork, Node, Parent, exact_law
from synthesis.tables import Floats

N_COLUMNS_MAX: Final = 64
N_LAW_CELLS_MAX: Final = 2**16  # of the law of one column given its parents
N_ELIMINATED_MAX: Final = 2**14  # cells of a table on the way to a pair: 64 columns take seconds
NAME_MAX: Final = 200
WHOLE: Final = 1e-3  # published laws are rounded: the largest deviation of their sum from 1

Levels: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class NamedNetwork:
    """A graph, and its laws if they are known.

    Parameters
    ----------
    dag : Dag
    levels : mapping of str to tuple of str
        The names of the levels of each column; empty without laws.
    model : BayesianNetwork, optional
        The laws, with levels in this order.

    Raises
    ------
    ValueError
        If there are too many columns, or names that no column has.
    """

    dag: Dag
    levels: Levels = field(default_factory=lambda: MappingProxyType({}))
    model: BayesianNetwork | None = None

    def __post_init__(self) -> None:
        _check_number(self.dag.columns)
        if any(not 0 < len(name) <= NAME_MAX for name in self.dag.columns):
            raise ValueError(f"the name of a column must have 1 to {NAME_MAX} characters")
        if self.model is not None:
            sizes = {one.name: one.size for one in self.model.attributes}
            if sizes != {name: len(own) for name, own in self.levels.items()}:
                raise ValueError("the levels do not match the laws")

    @classmethod
    def of_laws(
        cls, dag: Dag, levels: Levels, laws: Mapping[str, tuple[Sequence[str], Floats]]
    ) -> "NamedNetwork":
        """A network from the law of each column given its parents.

        Parameters
        ----------
        dag : Dag
        levels : mapping of str to tuple of str
        laws : mapping of str to (sequence of str, (n_levels of parent, ..., n_levels) ndarray)
            The parents in the order of the axes, and the shares, with sum 1 up to rounding.

        Raises
        ------
        ValueError
        """
        nodes, tables = [], []
        for child in dag.order():
            parents, law = laws[child]
            shape = tuple(len(levels[name]) for name in (*parents, child))
            if set(parents) != set(dag.parents(child)) or law.shape != shape:
                raise ValueError(f"the law of {child} does not have an axis for each parent")
            sums = law.sum(axis=-1, keepdims=True)
            if not (law >= 0).all() or not (np.abs(sums - 1) < WHOLE).all():
                raise ValueError(f"the shares of {child} must not be negative and must sum to 1")
            nodes.append(Node(child, tuple(map(Parent, parents)), len(parents)))
            tables.append(law / sums)
        attributes = tuple(Attribute.plain(name, len(levels[name])) for name in dag.columns)
        model = BayesianNetwork(attributes, tuple(nodes), tuple(tables), 0.0)
        return cls(dag, MappingProxyType(dict(levels)), model)


def network_in(text: str, suffix: str) -> NamedNetwork:
    r"""The network that a text describes.

    Parameters
    ----------
    text : str
    suffix : str
        ``.json``, as `tacit network learn` writes; ``.bif``, the interchange format of published
        networks; ``.txt``, an arc a line, or bnlearn's ``[A][S][E|A:S]``.

    Raises
    ------
    ValueError
        With what is wrong, if the text is no network in this form.

    Examples
    --------
    >>> sorted(network_in("age -> education\nsex, education\nresidence", ".txt").dag.arcs)
    [('age', 'education'), ('sex', 'education')]
    >>> sorted(network_in("[A][S][E|A:S]", ".txt").dag.arcs)
    [('A', 'E'), ('S', 'E')]
    """
    return READERS[suffix](text)


def _of_arcs(text: str) -> NamedNetwork:
    if text.lstrip().startswith("["):
        return _of_model_string(text)
    columns: dict[str, None] = {}
    arcs: set[Arc] = set()
    for at, line in enumerate(text.splitlines(), start=1):
        content = line.split("#")[0].strip()
        if not content:
            continue
        names = tuple(one.strip().strip('"') for one in re.split(r"->|,|\t", content))
        if len(names) > 2 or not all(names):  # noqa: PLR2004 - an arc has two ends
            raise ValueError(f"line {at} is neither an arc, as in A -> B, nor the name of a column")
        columns.update(dict.fromkeys(names))
        if len(names) > 1:
            arcs.add((names[0], names[1]))
        _check_number(columns)
    return NamedNetwork(Dag(tuple(columns), frozenset(arcs)))


MODEL_NODE: Final = re.compile(r"\s*\[([^\[\]|]+)(?:\|([^\[\]|]+))?\]")


def _of_model_string(text: str) -> NamedNetwork:
    columns: dict[str, None] = {}
    arcs: set[Arc] = set()
    at = 0
    while at < len(text.rstrip()):
        found = MODEL_NODE.match(text, at)
        if found is None:
            raise ValueError("it is not a list of columns with their parents, as in [A][S][E|A:S]")
        child = found[1].strip()
        columns[child] = None
        arcs |= {(parent.strip(), child) for parent in (found[2] or "").split(":") if found[2]}
        at = found.end()
        _check_number(columns)
    return NamedNetwork(Dag(tuple(columns), frozenset(arcs)))


def _check_number(columns: Collection[str]) -> None:
    if len(columns) > N_COLUMNS_MAX:
        raise ValueError(f"it has more than {N_COLUMNS_MAX} columns, which are not compared")


def _of_json(text: str) -> NamedNetwork:
    try:
        encoded: Any = json.loads(text)
        columns = tuple(map(str, encoded["columns"]))
        _check_number(columns)
        arcs = frozenset((str(one["from"]), str(one["to"])) for one in encoded["arcs"])
        dag = Dag(columns, arcs)
        if "laws" not in encoded:
            return NamedNetwork(dag)
        levels = {name: tuple(map(str, encoded["levels"][name])) for name in columns}
        laws = {}
        for one in encoded["laws"]:
            law = np.array(one["law"], dtype=np.float64)
            laws[str(one["column"])] = tuple(map(str, one["parents"])), law
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError):
        raise ValueError(
            "it is not the JSON that `tacit network learn -o network.json` writes"
        ) from None
    if laws.keys() != set(columns):
        raise ValueError("it must have one law for each column")
    return NamedNetwork.of_laws(dag, levels, laws)


BIF_TOKEN: Final = re.compile(r'"[^"]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+')
BIF_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class _Bif:
    """The tokens of a text in the interchange format, one after another."""

    def __init__(self, text: str) -> None:
        self._tokens: Iterator[str] = (
            found[0].strip('"') for found in BIF_TOKEN.finditer(BIF_COMMENT.sub(" ", text))
        )
        self.next = ""
        self.take()

    def take(self) -> str:
        """The present token; the one after it is then present."""
        taken, self.next = self.next, next(self._tokens, "")
        return taken

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if self.take() != token:
                raise ValueError(f"{token!a} is missing where BIF has it")

    def names(self, end: str) -> list[str]:
        """Names up to a token, which is taken too; commas between them are left out."""
        found = []
        while self.next != end:
            if not self.next:
                raise ValueError(f"{end!a} is missing at its end")
            one = self.take()
            if one != ",":
                found.append(one)
        self.take()
        return found

    def skip_block(self) -> None:
        """Everything up to the end of a block without blocks in it."""
        while self.take() != "{":
            if not self.next:
                raise ValueError("a block is not closed")
        self.names("}")


def _of_bif(text: str) -> NamedNetwork:
    bif = _Bif(text)
    levels: dict[str, tuple[str, ...]] = {}
    laws: dict[str, tuple[Sequence[str], Floats]] = {}
    while bif.next:
        match bif.take():
            case "network":
                bif.skip_block()
            case "variable":
                name = bif.take()
                levels[name] = _bif_levels(bif, name)
                _check_number(levels)
            case "probability":
                child, parents, law = _bif_law(bif, levels)
                laws[child] = parents, law
            case other:
                raise ValueError(f"BIF has no block {other[:NAME_MAX]!a}")
    if laws.keys() != levels.keys():
        raise ValueError("it must have one block `probability` for each variable")
    arcs = {(parent, child) for child, (parents, _) in laws.items() for parent in parents}
    return NamedNetwork.of_laws(Dag(tuple(levels), frozenset(arcs)), levels, laws)


def _bif_levels(bif: _Bif, name: str) -> tuple[str, ...]:
    bif.expect("{", "type", "discrete", "[")
    bif.names("]")
    bif.expect("{")
    found = tuple(bif.names("}"))
    if not found or len(set(found)) != len(found):
        raise ValueError(f"the levels of {name} must be distinct, and at least one is needed")
    while bif.take() != "}":  # properties
        if not bif.next:
            raise ValueError(f"the block of {name} is not closed")
    return found


def _bif_law(bif: _Bif, levels: Levels) -> tuple[str, list[str], Floats]:
    bif.expect("(")
    child, *rest = bif.names(")")
    parents = rest[1:]  # after the bar
    unknown = [name for name in (child, *parents) if name not in levels]
    if unknown or rest[:1] not in ([], ["|"]):
        raise ValueError(f"the probabilities of {child} are not those of variables before them")
    shape = tuple(len(levels[name]) for name in (*parents, child))
    if math.prod(shape) > N_LAW_CELLS_MAX:
        raise ValueError(
            f"the law of {child} has {math.prod(shape)} shares; at most {N_LAW_CELLS_MAX} are read"
        )
    law = np.full(shape, np.nan)
    bif.expect("{")
    while bif.next != "}":
        where: tuple[int, ...] = ()
        match bif.take():
            case "(":
                where = _places(bif.names(")"), parents, levels)
            case "default":
                places = np.isnan(law).all(axis=-1)
                law[places] = _shares(bif.names(";"), shape[-1], child)
                continue
            case "table" if not parents:
                pass
            case _:
                raise ValueError(
                    f"the law of {child} must have a line for each combination of its parents"
                )
        law[where] = _shares(bif.names(";"), shape[-1], child)
    bif.take()
    if np.isnan(law).any():
        raise ValueError(f"the law of {child} leaves out a combination of its parents")
    return child, parents, law


def _places(values: Sequence[str], parents: Sequence[str], levels: Levels) -> tuple[int, ...]:
    if len(values) != len(parents) or not all(
        value in levels[name] for value, name in zip(values, parents, strict=True)
    ):
        raise ValueError("a line has values that its parents do not have")
    return tuple(levels[name].index(value) for value, name in zip(values, parents, strict=True))


def _shares(texts: Sequence[str], size: int, child: str) -> Floats:
    try:
        found = np.array([float(one) for one in texts])
    except ValueError:
        raise ValueError(f"a share of {child} is no number") from None
    if found.shape != (size,):
        raise ValueError(f"a line of {child} must have {size} shares")
    return found


READERS: Final[Mapping[str, Callable[[str], NamedNetwork]]] = MappingProxyType(
    {".json": _of_json, ".bif": _of_bif, ".txt": _of_arcs}
)


@dataclass(frozen=True, eq=False)
class PairOfTables:
    """The tables of two columns in two networks, over the levels of both.

    Parameters
    ----------
    columns : (str, str)
    one, other : (n_levels, n_levels) ndarray of float64
        Shares with sum 1; a level that a network does not have has the share 0.
    """

    columns: tuple[str, str]
    one: Floats
    other: Floats


def pairs_of_tables(one: NamedNetwork, other: NamedNetwork) -> list[PairOfTables] | str:
    """The tables of every pair of columns in two networks, or why they cannot be compared.

    Both networks have the same columns.

    Notes
    -----
    Each table is exact, by variable elimination. A network that is too dense for that is not
    compared.
    """
    if one.model is None or other.model is None:
        return "A network has no laws: .bif files and the .json of `tacit network learn` have them."
    merged = {
        name: tuple(dict.fromkeys((*one.levels[name], *other.levels[name])))
        for name in one.dag.columns
    }
    for name, both in merged.items():
        if len(both) == len(one.levels[name]) + len(other.levels[name]):
            return f"The two networks have no level of {name} in common."
    found = []
    for names in combinations(one.dag.columns, 2):
        tables = [_table(network, names, merged) for network in (one, other)]
        if tables[0] is None or tables[1] is None:
            return "A network is too dense: its tables cannot be computed exactly."
        found.append(PairOfTables(names, tables[0], tables[1]))
    return found


def _table(network: NamedNetwork, names: tuple[str, str], merged: Levels) -> Floats | None:
    assert network.model is not None  # noqa: S101 - both have laws
    law = exact_law(network.model, names, {}, N_ELIMINATED_MAX)
    if law is None:
        return None
    found = np.zeros(tuple(len(merged[name]) for name in names))
    places = [[merged[name].index(level) for level in network.levels[name]] for name in names]
    found[np.ix_(*places)] = law.shares
    return found
