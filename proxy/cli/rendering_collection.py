"""What a collection says as text on a terminal: a table of shares, and what holds of them."""

import json
from collections.abc import Iterator, Sequence

from rich.table import Table

from proxy.cli.rendering import plain
from proxy.protocol import tacit_pb2

GAP_SAID = 0.001  # of a logarithm: less makes no difference to anybody


def shares_table(names: Sequence[str], found: tacit_pb2.EstimateCollectionReply) -> Table:
    """The share of each cell; with intervals, where shares have some."""
    shown = Table(header_style="bold")
    for heading in names:
        shown.add_column(plain(heading))
    is_likeliest = found.HasField("basis")
    shown.add_column("likeliest share" if is_likeliest else "share", justify="right")
    if not is_likeliest:
        shown.add_column(f"{found.confidence:g} interval")
        shown.add_column("found by")
    for cell in found.cells:
        more = [] if is_likeliest else [f"{cell.low:.4f} to {cell.high:.4f}", cell.method]
        shown.add_row(*(plain(_level_text(one)) for one in cell.levels), f"{cell.share:.4f}", *more)
    return shown


def shares_notes(found: tacit_pb2.EstimateCollectionReply) -> Iterator[str]:
    """What is said below the table."""
    if found.HasField("basis"):
        basis = found.basis
        yield (
            f"The likeliest shares by the {basis.answers} answers to "
            f"{', '.join(basis.combination)}. Small ones are biased, so none has an interval."
        )
        if basis.likelihood_gap >= GAP_SAID:
            yield (
                "They are not reached yet: others may be likelier, by a factor of at most "
                f"exp({basis.likelihood_gap:.3g})."
            )
    elif found.HasField("half_width_together"):
        yield (
            f"All of them at once are within {found.half_width_together:.4f} of the truth "
            f"({found.confidence:g})."
        )
    yield f"{found.respondents} respondents. Free."


def _level_text(written: str) -> str:
    """A level as it is read: texts without their quotes."""
    level = json.loads(written)
    return level if isinstance(level, str) else written
