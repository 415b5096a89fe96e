"""What is in a page: its elements, attributes, visible text and colours, for tests to look at."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Elements, attributes and visible text; fails on a tag that does not close what is open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, other, value in self.attributes if other == name]


def colours(text: str) -> dict[str, dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    pattern = r"--([a-z-]+): (#[0-9a-f]{6});"
    base = dict(re.findall(pattern, light))
    return {"light": base, "dark": base | dict(re.findall(pattern, dark))}


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)
