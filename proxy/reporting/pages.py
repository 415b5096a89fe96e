"""What all pages share: templates that escape, and formats for numbers and times.

Each page adds filters of its own. Values in, text out.
"""

from collections.abc import Callable

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from proxy.shared.amounts import exact_text, rounded_down, rounded_up, share_percent


def page_environment(*packages: str) -> Environment:
    """The templates of some packages, with escaping of every value.

    Parameters
    ----------
    *packages : str
        Each has a folder `templates`. The first package that has a template provides it; the
        templates of this package, including the style sheet, are always available.
    """
    loaders = [PackageLoader(package) for package in (*packages, "proxy.reporting")]
    environment = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "exact": exact_text,
        "up": rounded_up,
        "down": rounded_down,
        "count": lambda number: f"{number:,}",
        "moment": moment,
    }
    environment.filters |= filters
    environment.globals["share"] = share_percent
    return environment


def moment(at: str) -> Markup:
    """A time in a readable form, on one line.

    >>> moment("2026-11-21T20:07:49.123+00:00")
    Markup('<time>2026-11-21 20:07:49 UTC</time>')
    """
    text = f"{at[:10]} {at[11:19]} UTC" if at.endswith("+00:00") else at
    return Markup("<time>{}</time>").format(text)
