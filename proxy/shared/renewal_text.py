"""The text about a budget that renews: when it does, and the sums beyond a window.

The same words for the server's own lines and for the command line, which knows messages alone.
Numbers are rounded for people; programs read them where they stand. A budget that does not renew
has no words here.
"""

from fractions import Fraction


def renewal_words(
    renews_on: str, in_year: Fraction | float | None, in_all: Fraction | float | None
) -> str:
    """When a budget renews, and what was spent; a sum that the reader may not learn is None.

    >>> renewal_words("2027-01-01", 4.0, 6.0)
    'renews on 2027-01-01; 4 spent in the last 12 months, 6 in all'
    >>> renewal_words("2027-01-01", None, None)
    'renews on 2027-01-01'
    """
    when = f"renews on {renews_on}"
    if in_year is None or in_all is None:
        return when
    spent = f"{float(in_year):.6g} spent in the last 12 months, {float(in_all):.6g} in all"
    return f"{when}; {spent}"


def a_window(window: str) -> str:
    """How often, behind an epsilon.

    >>> a_window("quarter"), a_window("")
    (' a quarter', '')
    """
    return f" a {window}" if window else ""


def this_window(window: str) -> str:
    """The window that is open now.

    >>> this_window("quarter"), this_window("day")
    ('this quarter', 'today')
    """
    return "today" if window == "day" else f"this {window}"
