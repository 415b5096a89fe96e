"""The shape every benchmark shares: figures, bars they must clear, one JSON object, an exit code.

A benchmark is a module with ``main`` that measures, then calls `run`. Standard output carries the
JSON object and nothing else; progress goes to standard error.

Nothing here measures time: a figure belongs to the benchmark that knows what it compares.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NoReturn

from proxy.monitoring.logs import configure_logs


@dataclass(frozen=True, slots=True)
class Bar:
    """One claim, the figure that was measured for it, and whether it holds.

    Parameters
    ----------
    name : str
        The claim in words, with its unit: ``"contour against Monte Carlo, times faster"``.
    value, bar : float
        What was measured, and what it must reach.
    holds : bool
        Decided by the benchmark, which knows on which side of the bar the figure must lie.
    """

    name: str
    value: float
    bar: float
    holds: bool


def wants_quick(description: str, arguments: Sequence[str] | None = None) -> bool:
    """Read the command line of a benchmark: True when ``--quick`` was asked for."""
    parser = argparse.ArgumentParser(description=description)
    configure_logs()  # to standard error
    parser.add_argument("--quick", action="store_true", help="smaller sizes, the same bars")
    return bool(parser.parse_args(arguments).quick)


def progress(text: str) -> None:
    """Tell whoever watches what is being measured, out of the JSON's way."""
    print(text, file=sys.stderr, flush=True)


def run(figures: Mapping[str, object], bars: Sequence[Bar]) -> NoReturn:
    """Print the figures and bars as one JSON object; exit 0 if every bar holds, else 1."""
    machine = {"python": platform.python_version(), "cpus": os.cpu_count()}
    report = {
        "figures": {"machine": machine, **figures},
        "bars": [{**asdict(bar), "holds": bool(bar.holds)} for bar in bars],
    }
    print(json.dumps(report, indent=2, allow_nan=False, default=float))
    sys.exit(0 if all(bar.holds for bar in bars) else 1)
