"""Windows of time: of limits, of budgets that renew, and of the epochs of streams."""

import datetime as dt


def window_start(window: str, at: str) -> str:
    """A text that sorts before every moment of the window of `at`, and after all earlier ones.

    >>> window_start("month", "2026-11-21T20:07:49.123+00:00")
    '2026-11'
    """
    if window == "week":
        day = dt.date.fromisoformat(at[:10])
        return (day - dt.timedelta(days=day.weekday())).isoformat()
    if window == "quarter":
        return f"{at[:5]}{(int(at[5:7]) - 1) // 3 * 3 + 1:02}"
    return at[: {"day": 10, "month": 7, "year": 4, "never": 0}[window]]
