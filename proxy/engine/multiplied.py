"""SQL on answers that would multiply relations, tried before anything is paid for them.

Only SQL whose relations have too many rows, if they were joined without a condition, or that makes
long texts of them, is tried: all other SQL takes time in proportion to what it reads.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from planner.workload import Workload
from proxy.engine.postprocessing import OuterSql
from proxy.engine.relations import stand_in

N_CHARACTERS_MAX: Final = 2**26  # of texts on as many rows
N_MULTIPLIED_MAX: Final = 2**20  # rows, if all relations read were joined without a condition


def check_multiplied(
    workload: Workload,
    database: OuterSql,
    public_relations: Callable[[Sequence[str]], dict[str, pa.Table]],
) -> None:
    """Refuse SQL on the answers of private tables that would take too long.

    Parameters
    ----------
    workload : Workload
    database : OuterSql
        Tries it.
    public_relations : callable
        What is read beside answers, by its names.

    Raises
    ------
    TooSlow, TooLarge
    """
    outer = workload.outer
    if outer is None or not workload.tables:
        return
    sizes = {part.name: part.n_rows for part in workload.parts}
    public = public_relations(outer.public)
    sizes |= {name: table.num_rows for name, table in public.items()}
    n_joined = outer.n_made * math.prod(max(sizes.get(name, 1), 1) for name in outer.reads)
    if n_joined > N_MULTIPLIED_MAX or n_joined * outer.n_characters > N_CHARACTERS_MAX:
        # What is equal meets most rows where all answers are one, what differs where none are.
        for differ in (False, True):
            relations = {part.name: stand_in(part, differ=differ) for part in workload.parts}
            database.run(outer.sql, relations | public)
