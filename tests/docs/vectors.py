"""The file of test vectors, and the page's example from it.

Until the format is final, `python -m tests.docs.vectors --write` makes both anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]

from tallystick.events.canonical import encode_body
from tallystick.events.envelope import Header

from .fixed import make, store
from .refused import refused

FILE = Path(__file__).with_name("log-format-1.json")
PAGE = Path(__file__).parents[2] / "docs" / "log-format.md"
BEGIN, END = "<!-- example: made by `python -m tests.docs.vectors --write` -->\n", "<!-- end of example -->\n"
BYTES_A_LINE = 24


def text() -> str:
    """What the file holds, as our code makes it: bytes in hexadecimal, a line for each row."""
    vectors = {**store(), "refused": refused(*make())}
    return "{\n" + ",\n".join(f'"{name}": {_lines(_shown(part))}' for name, part in vectors.items()) + "\n}\n"


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    return value.hex() if isinstance(value, bytes) else value


def _lines(value: Any) -> str:
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {_lines(each)}" for name, each in value.items()) + "\n}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def with_example(page: str) -> str:
    """The page with one entry taken apart."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + _example() + "\n" + END + rest.partition(END)[2]


def _example() -> str:
    made = store()
    working, entry, payload = made["workings"][1], made["tables"]["entry"][1][5], made["tables"]["payload"][1][1]
    body = msgpack.unpackb(working["body"])
    fields = [(encode_body({name: value})[1:], f"{name}: {_said(value)}") for name, value in body.items()]
    header = [
        (msgpack.packb(each), name) for name, each in zip(Header._fields, msgpack.unpackb(entry[:-64]), strict=True)
    ]
    kept = ("data_key", "event_key", "salt", "nonce")
    blocks = {
        "The body": [(working["body"][:1], f"a map of {len(body)}"), *fields],
        "What seals it": [(working[name], name.replace("_", " ")) for name in kept],
        "The payload": [
            (payload[:4], "generation"),
            (payload[4:28], "nonce"),
            (payload[28:-16], "ciphertext"),
            (payload[-16:], "tag"),
        ],
        "The entry": [(entry[:1], "an array of 15"), *header, (entry[-64:], "signature")],
        "What comes of it": [(working["leaf"], "leaf hash"), (working["root_after"], "root of the two entries")],
    }
    return "\n".join(f"{title}:\n\n```\n" + "\n".join(_block(parts)) + "\n```\n" for title, parts in blocks.items())


def _said(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)


def _block(parts: list[tuple[bytes, str]]) -> Iterator[str]:
    for data, words in parts:
        lines = [data[start : start + BYTES_A_LINE].hex() for start in range(0, len(data), BYTES_A_LINE)]
        yield f"{lines[0]:<{2 * BYTES_A_LINE}}  {words}"
        yield from lines[1:]


if __name__ == "__main__" and "--write" in sys.argv:
    FILE.write_text(text(), encoding="utf-8")
    PAGE.write_text(with_example(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
