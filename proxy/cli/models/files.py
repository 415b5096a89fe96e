"""Files of models: which of them can be joined, their rows and laws, and the joined file.

A file says which columns its model is of, and their levels, so that models of different tables are
not joined by mistake. Everything in it is public or noisy, and so is everything made of it.
"""

import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cube.axis import Axis
from cube.encoding import AXIS_KINDS, declared_column
from cube.refusals import InvalidRequest, TooLarge
from planner.sql.messages import listed
from proxy.cli.shared.rendering import plain
from proxy.protocol import tacit_pb2
from proxy.synthetic_tables.conditional_law import LawQuestion, asked_law
from proxy.synthetic_tables.models import N_BYTES_MAX, ModelFile, drawn
from synthesis import Model, PairwiseModel, StratifiedModel, distances, merged_model
from synthesis.merging import Watch

N_FILES_MAX: Final = 100
N_ROWS_MAX: Final = 10_000_000  # drawn here at once
LARGE: Final = 0.01  # of the rows of a pair of columns: as much is said to be lost
SEED_BITS: Final = 63
EXPORT: Final = "A server writes one: tacit synth get NAME -o FILE.model."


@dataclass(frozen=True, slots=True)
class Merged:
    """A joined model.

    Parameters
    ----------
    content : bytes
        Of its file.
    told : RenderableType
        The sizes, the weights, and what was lost.
    """

    content: bytes
    told: RenderableType


def read_model(path: Path) -> ModelFile:
    """The model in a file.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    try:
        with path.open("rb") as file:
            content = file.read(N_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.", hint=EXPORT) from None
    if len(content) > N_BYTES_MAX:
        raise TooLarge(f"{path} has more than {N_BYTES_MAX} bytes: it is too large for a model.")
    try:
        return ModelFile.from_bytes(content)
    except ValueError as error:
        raise InvalidRequest(f"{path} holds no model: {error}.", hint=EXPORT) from None


def rows_of(path: Path, n_rows: int | None, seed: int | None) -> pa.Table:
    """Rows drawn from the model in a file: as many as it estimates, by default.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    found = read_model(path)
    n_drawn = max(1, round(found.model.total)) if n_rows is None else n_rows
    if n_drawn > N_ROWS_MAX:
        raise TooLarge(
            f"{n_drawn} rows are more than the {N_ROWS_MAX} that are drawn at once.",
            hint="Give --rows.",
        )
    own_seed = secrets.randbits(SEED_BITS) if seed is None else seed
    return drawn(found.model, found.axes, n_rows=n_drawn, seed=own_seed)


def law_of(
    request: tacit_pb2.SyntheticLawRequest,
) -> tuple[pa.Table, tacit_pb2.SyntheticLawBasis]:
    """The law of some columns of the model in a file, as a server would tell it.

    Raises
    ------
    InvalidRequest, TooLarge, UnknownName
    """
    path = Path(request.name)
    found = read_model(path)
    question = LawQuestion(
        tuple(request.of), tuple((one.column, one.value) for one in request.given)
    )
    law = asked_law(
        str(path), found.axes, question, found.model, lambda: rows_of(path, None, 0), seed=0
    )
    return law.data, tacit_pb2.SyntheticLawBasis(way=law.way, n_rows=law.n_rows)


def merge_files(
    files: Sequence[Path], weights: str, *, degree: int | None = None, by_rows: bool = False
) -> Merged:
    """Join the models in files.

    Parameters
    ----------
    weights : str
        ``sizes``, ``equal``, or a number for each file with commas between.

    Raises
    ------
    InvalidRequest, TooLarge
        With what differs; nothing is written.
    """
    if len(files) < 2:  # noqa: PLR2004 - two or more
        raise InvalidRequest("Two models or more are joined.", hint="Name another file.")
    if len(files) > N_FILES_MAX:
        raise TooLarge(
            f"At most {N_FILES_MAX} models are joined at a time.", hint="Join them in groups."
        )
    if len({path.resolve() for path in files}) < len(files):
        raise InvalidRequest(
            "A file is named twice: its rows would count twice.", hint="Name each file once."
        )
    found = [read_model(path) for path in files]
    for path, one in zip(files, found, strict=True):
        if not one.model.total > 0:
            raise InvalidRequest(
                f"The model in {path} is empty: it estimates no rows.", hint="Leave it out."
            )
        _check_alike(files[0], found[0].axes, path, one.axes)
    models = [one.model for one in found]
    numbers = _weights(weights, files, models)
    rng = np.random.default_rng()
    with _progress() as watch:
        merged = merged_model(models, numbers, rng, degree=degree, by_rows=by_rows, watch=watch)
        lost = distances(models, numbers, merged, rng, watch)
    content = ModelFile(found[0].axes, merged).to_bytes()
    ModelFile.from_bytes(content)  # what is written can be read
    return Merged(content, _told(files, models, numbers, merged, lost))


def _check_alike(first: Path, axes: Sequence[Axis], path: Path, others: Sequence[Axis]) -> None:
    """Refuse models of different columns or levels, and say which.

    Raises
    ------
    InvalidRequest
    """
    one, other = ({axis.name: axis for axis in own} for own in (axes, others))
    if one.keys() != other.keys():
        name = min(one.keys() ^ other.keys())
        has, lacks = (first, path) if name in one else (path, first)
        raise InvalidRequest(
            f"The models are of different columns: {has} has {name!a}, and {lacks} does not.",
            hint="Make both tables of the same --columns.",
        )
    for name, axis in one.items():
        if axis != other[name]:
            raise InvalidRequest(
                f"{name!a} has other levels in {path} than in {first}: "
                f"{_difference(axis, other[name], first, path)}.",
                hint="Declare the column alike in both configurations, and make the tables again.",
            )


def _difference(one: Axis, other: Axis, first: Path, path: Path) -> str:
    """What differs between two axes of a name: the kind, or the first level that only one has."""
    kinds = AXIS_KINDS[type(one)], AXIS_KINDS[type(other)]
    if kinds[0] != kinds[1]:
        return f"it is of kind {kinds[0]} in {first}, and {kinds[1]} in {path}"
    for own, others, has in ((one, other, first), (other, one, path)):
        known = set(others.levels)
        extra = next((level for level in own.levels if level not in known), None)
        if own.null and not others.null:
            return f"it may be NULL only in {has}"
        if extra is not None:
            return f"only {has} has the level {str(extra)!a}"
    if one.levels != other.levels:
        place = next(
            at
            for at, pair in enumerate(zip(one.levels, other.levels, strict=True))
            if pair[0] != pair[1]
        )
        return f"level {place + 1} is {str(one.levels[place])!a} and {str(other.levels[place])!a}"
    differs = declared_column(one), declared_column(other)
    key = next(key for key, value in differs[0].items() if value != differs[1].get(key))
    return f"{key} is {differs[0][key]} and {differs[1].get(key)}"


def _weights(text: str, files: Sequence[Path], models: Sequence[Model]) -> list[float]:
    """The weight of each model.

    Raises
    ------
    InvalidRequest
    """
    match text.strip().lower():
        case "sizes":
            return [one.total for one in models]
        case "equal":
            return [1.0] * len(models)
    try:
        found = [float(one) for one in text.split(",")]
    except ValueError:
        raise InvalidRequest(
            f"The weights {text!a} are not numbers.",
            hint="Write sizes, equal, or a number for each model, like 3,1.",
        ) from None
    if len(found) != len(files):
        raise InvalidRequest(
            f"There are {len(found)} weights for {len(files)} models.",
            hint="Give one for each, in the order of the files.",
        )
    if not all(0 <= one < math.inf for one in found) or not 0 < math.fsum(found) < math.inf:
        raise InvalidRequest(
            f"The weights {text!a} are not all from 0 up, with a sum above 0.",
            hint="Leave out a model that is not to count.",
        )
    return found


def _told(
    files: Sequence[Path],
    models: Sequence[Model],
    weights: Sequence[float],
    merged: Model,
    lost: Mapping[tuple[str, ...], float],
) -> RenderableType:
    """The sizes and weights of models, and what the joined model does not say of their mixture."""
    shown = Table(header_style="bold")
    shown.add_column("model")
    for heading in ("kind", "rows, about", "weight"):
        shown.add_column(heading, justify="right" if heading != "kind" else "left")
    whole = math.fsum(weights)
    for path, one, weight in zip(files, models, weights, strict=True):
        shown.add_row(plain(str(path)), _kind(one), f"{one.total:.0f}", f"{weight / whole:.4f}")
    mean = math.fsum(lost.values()) / len(lost)
    worst = max(lost, key=lambda pair: lost[pair])
    away = (
        f"Of the models' mixture, {mean:.4f} of the rows of a pair of columns lie elsewhere on "
        f"average; most of {listed(worst)}: {lost[worst]:.4f}."
    )
    joined = f"Joined into a {_kind(merged)} model of about {merged.total:.0f} rows. Free."
    lines = [joined, away]
    if mean > LARGE and not isinstance(merged, PairwiseModel | StratifiedModel):
        lines.append("More of it is kept with a higher --degree.")
    return Group(shown, *map(plain, lines))


def _kind(model: Model) -> str:
    """The name of a model's kind."""
    match model:
        case PairwiseModel():
            return "pairwise"
        case StratifiedModel():
            return "by class"
        case _:
            return "network"


@contextmanager
def _progress() -> Iterator[Watch]:
    """A bar on a terminal, while something takes long."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda step, done: bar.update(task, completed=done, description=step)
