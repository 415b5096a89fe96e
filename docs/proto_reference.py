"""Writes the reference page of a protocol, in Markdown, from the .proto file and its comments.

The comments are the reference, and a compiled protocol has none. This reads only the form of our
own protocol (one service, flat messages, a line for each field). A test compares the page with the
compiled protocol, so that no call, message or field is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BLOCK = re.compile(r"(service|message) (\w+) \{(\})?")
CALL = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")
FIELD = re.compile(r"(?:(optional|repeated) )?([\w.]+) (\w+) = (\d+);")
SCALARS = frozenset({"bool", "bytes", "double", "int32", "int64", "sfixed64", "string", "uint64"})


@dataclass(frozen=True, slots=True)
class Part:
    """A call or a field: the match of its line, and the comment above it."""

    comment: str
    match: re.Match[str]


@dataclass(frozen=True, slots=True)
class Block:
    """A service or a message."""

    kind: str
    name: str
    comment: str
    parts: list[Part] = field(default_factory=list)


def reference_page(text: str) -> str:
    """The page of a .proto file.

    Raises
    ------
    ValueError
        If a line of the file is not understood.
    """
    introduction, blocks = _read(text)
    lines = ["# The protocol `tacit.v1`", "", introduction, ""]
    lines += [
        "It is defined in `proxy/protocol/tacit.proto`. Flight SQL is served on the same port.",
        "",
    ]
    for block in blocks:
        lines += _service(block) if block.kind == "service" else _message(block)
    return "\n".join(lines)


def _read(text: str) -> tuple[str, list[Block]]:
    introduction, comment = "", []
    blocks: list[Block] = []
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        said, comment = " ".join(filter(None, comment)), []
        if line.startswith("syntax "):
            introduction = said
        elif begun := BLOCK.fullmatch(line):
            blocks.append(Block(kind=begun[1], name=begun[2], comment=said))
        elif found := CALL.fullmatch(line) or FIELD.fullmatch(line):
            blocks[-1].parts.append(Part(comment=said, match=found))
        elif line not in {"", "}"} and not line.startswith("package "):
            raise ValueError(f"line {number} is not understood: {line}")
    return introduction, blocks


def _service(block: Block) -> Iterator[str]:
    yield from (f"## Service {block.name}", "", block.comment, "")
    for part in block.parts:
        name, asks_many, asked, answers_many, answered = part.match.groups()
        yield from (f"### {name}", "", part.comment, "")
        sent, got = _type(asked, bool(asks_many)), _type(answered, bool(answers_many))
        yield from (f"{sent} → {got}", "")


def _message(block: Block) -> Iterator[str]:
    yield from (f"## {block.name}", "", block.comment, "")
    if not block.parts:
        yield from ("No fields.", "")
        return
    yield from ("| number | field | type | |", "|---|---|---|---|")
    for part in block.parts:
        rule, kind, name, number = part.match.groups()
        words = f"{rule} {_type(kind)}" if rule else _type(kind)
        yield f"| {number} | `{name}` | {words} | {part.comment} |"
    yield ""


def _type(name: str, streamed: bool = False) -> str:
    shown = f"`{name}`" if name in SCALARS else f"[{name}](#{name.lower()})"
    return f"stream of {shown}" if streamed else shown
