"""What single charges bought, in words: each one for a list, the dearest ones for a page.

The words are made of the blocks as the ledger has them (query_words.py), when they are asked for:
most charges of a long ledger are only added up.
"""

from typing import Final

from cube.encoding import decode_block
from proxy.reporting.declared import DeclaredTable
from proxy.reporting.model import ReportedCharge, TableReport
from proxy.reporting.query_words import query_text, unit_count_text

N_DEAREST: Final = 12


def bought_text(purchase: ReportedCharge, declared: DeclaredTable | None) -> str:
    """What a charge bought: the first of its queries, and how many more there are."""
    rows = [query_text(decode_block(dict(block)), declared) for block in purchase.first_blocks]
    counts = [
        unit_count_text(decode_block(one["block"]), declared, only_cut="only_cut" in one)
        for one in purchase.first_counts
    ]
    texts = [*rows, *counts]
    n_more = purchase.n_blocks + purchase.n_unit_counts - len(texts)
    if n_more:
        texts.append(f"{n_more} more measured together")
    if purchase.n_statistics:
        texts.append(f"{purchase.n_statistics} statistics")
    return "; ".join(texts)


def dearest_charges(table: TableReport) -> list[tuple[ReportedCharge, str]]:
    """The charges that added most to a table's cost, the first of equals first."""
    sorted_charges = sorted(table.purchases, key=lambda one: (-one.units, one.seq))
    return [(one, bought_text(one, table.declared)) for one in sorted_charges[:N_DEAREST]]
