"""The auditor's verdict on a ledger in a file."""

from contextlib import closing
from pathlib import Path

from accountant.auditor.verdict import Verdict
from accountant.auditor.verify import verify
from accountant.ledger.opening import open_reader


def audited(path: Path) -> Verdict:
    with closing(open_reader(str(path))) as reader:
        return verify(reader.entries_after(0))
