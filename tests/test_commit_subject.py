"""The rule for subjects of commits accepts those of this repository and refuses others."""

import pytest

from tests.commit_subject import wrong


@pytest.mark.parametrize(
    "message",
    [
        "ledger: a server starts without psycopg\n\nIt imported it at the top.\n",
        "docs: a page\n# a comment of git\n",
        "Merge branch 'x'\n",
    ],
)
def test_a_subject_that_names_its_area_is_accepted(message: str) -> None:
    assert wrong(message) is None


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Fix things\n",
        "ledger: done.\n",
        "ledger: \n",
        "ledger: a\nno blank line\n",
        "a: " + "b" * 99,
    ],
)
def test_others_are_refused(message: str) -> None:
    assert wrong(message) is not None
