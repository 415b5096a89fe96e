"""Other libraries on the same tables, each in an environment of its own.

    python -m benchmarks.synthesis_peers [--quick]

A fresh environment is made in a temporary folder and the library installed into it by pip, so this
needs a package index and some minutes. Every run is one process on one thread with a limit on its
CPU time; a library that cannot be installed, fails or passes the limit is reported as such. The
time begins when the library and the rows are loaded and ends with the synthetic rows in memory.

There are no bars for other libraries. Settings are those of docs/synthesis_benchmark.md.
"""

import json
import os
import resource
import subprocess
import sys
import venv
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.marginal_distance import pairs_distance
from benchmarks.report import progress, run, wants_quick
from benchmarks.synthesis_tables import BenchTable, tables

CPU_SECONDS_MAX = 900  # of each of its processes
SECONDS_MAX = 3 * CPU_SECONDS_MAX
EPSILON = 1.0
DELTA = 1e-9
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)

# Arguments of a program: rows, domain sizes as JSON, epsilon, delta, where to write the rows.
START = """
import json, os, sys
import pandas as pd
source, domain, epsilon, delta, target = sys.argv[1:]
domain, epsilon, delta = json.loads(domain), float(epsilon), float(delta)
def cpu():  # of its own processes too, once they have ended
    return sum(os.times()[:4])
"""
DATA_SYNTHESIZER = """
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
n_rows = len(pd.read_csv(source))
describer, generator = DataDescriber(), DataGenerator()
start = cpu()
describer.describe_dataset_in_correlated_attribute_mode(
    source, k=2, epsilon=epsilon, seed=0,
    attribute_to_is_categorical=dict.fromkeys(domain, True))
describer.save_dataset_description_to_file(target + ".json")
generator.generate_dataset_in_correlated_attribute_mode(n_rows, target + ".json")
found = generator.synthetic_dataset
"""
DPMM = """
from dpmm.models.{module} import {model}
rows = pd.read_csv(source)
start = cpu()
model = {model}(epsilon=epsilon, delta=delta, n_iters=1000, n_jobs=1, domain=domain)
model.fit(rows)
found = model.generate(n_records=len(rows))
"""
END = """
print("CPU", cpu() - start)
found[list(domain)].to_csv(target, index=False)
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library's method.

    Parameters
    ----------
    name : str
    requirement : str
        For pip.
    program : str
        Between START and END: from `source` to the rows `found`, timed from `start`.
    on : tuple of str
        The tables that it gets through within the limit.
    """

    name: str
    requirement: str
    program: str
    on: tuple[str, ...]


PEERS = (
    Peer("DataSynthesizer 0.1.13, k = 2, every column categorical, pure",
         "DataSynthesizer==0.1.13", DATA_SYNTHESIZER, ("nltcs",)),
    Peer("dpmm 0.1.9 MST", "dpmm==0.1.9",
         DPMM.format(module="mst", model="MSTGM"), ("adult14", "adult15", "nltcs", "br2000")),
    Peer("dpmm 0.1.9 PrivBayes+PGM, degree 2", "dpmm==0.1.9",
         DPMM.format(module="priv_bayes", model="PrivBayesGM"), ("adult14", "nltcs")),
)  # fmt: skip
QUICK = (Peer("dpmm 0.1.9 MST", "dpmm==0.1.9", PEERS[1].program, ("nltcs",)),)


def main() -> None:
    """Install and run the peers, and print their figures."""
    run(
        peer_figures(quick=wants_quick("Other libraries on the tables of benchmarks.synthesis.")),
        [],
    )


def peer_figures(*, quick: bool) -> dict[str, object]:
    """Install and run the peers."""
    at_hand = tables()
    figures: dict[str, object] = {"epsilon": EPSILON, "delta_where_not_pure": DELTA}
    with TemporaryDirectory(prefix="tacit-peers-") as folder:
        for peer in QUICK if quick else PEERS:
            python = installed(Path(folder), peer.requirement)
            for name in peer.on:
                if name in at_hand:
                    outcome = measured(peer, python, at_hand[name], Path(folder))
                    figures[f"{peer.name} on {name}"] = outcome
                    progress(f"{peer.name} on {name}: {outcome}")
    return figures


def installed(folder: Path, requirement: str) -> Path | None:
    """The interpreter of an environment that has a library; None if pip could not make one."""
    home = folder / requirement
    python = home / "bin" / "python"
    if not home.exists():
        progress(f"installing {requirement}")
        venv.create(home, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", requirement]
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode:  # noqa: S603 - made here
            return None
    return python if python.exists() else None


def measured(
    peer: Peer, python: Path | None, table: BenchTable, folder: Path
) -> dict[str, float | str]:
    """The error and the CPU seconds of one run, or what went wrong."""
    if python is None:
        return {"failed": f"{peer.requirement} could not be installed"}
    real = table.rows()
    source, target = folder / "rows.csv", folder / "found.csv"
    names = [f"c{place:02d}" for place in range(real.shape[1])]
    np.savetxt(source, real, fmt="%d", delimiter=",", header=",".join(names), comments="")
    domain = json.dumps(dict(zip(names, table.sizes, strict=True)))
    target.unlink(missing_ok=True)
    arguments = [str(source), domain, str(EPSILON), str(DELTA), str(target)]
    try:
        done = subprocess.run(  # noqa: S603 - an environment and a program of our own
            [str(python), "-c", START + peer.program + END, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            env={**os.environ, **ONE_THREAD},
            preexec_fn=partial(
                resource.setrlimit, resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX)
            ),
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no result in {SECONDS_MAX} s"}
    if done.returncode or not target.exists():
        reason = (done.stderr.strip().splitlines() or ["stopped"])[-1]
        return {"failed": f"exit {done.returncode}: {reason[:200]}"}
    [seconds] = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("CPU ")]
    synthetic = np.loadtxt(target, delimiter=",", skiprows=1).astype(np.int64)
    return {
        "pairs": pairs_distance(real, synthetic, table.sizes),
        "cpu_seconds": float(seconds),
    }


if __name__ == "__main__":
    main()
