"""Who acts, on which installation, by which clock: what every command needs to know."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from reprlib import repr as repr_of
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from ..errors import Refused
from ..events.installation import Installation
from ..events.kinds import Event

PATIENCE_SECONDS = 10.0
WORD = "It is one word of small letters, digits, - and _, beginning with a letter, 32 at most"

Kind = TypeVar("Kind", bound=Event)


class Session(NamedTuple):
    """An actor as claimed, what is known of how they act, and the wall clock (microseconds since 1970, UTC)."""

    installation: Installation
    actor: str
    via: Mapping[str, str]
    now: Callable[[], int]

    @property
    def index_key(self) -> bytes:
        """The key of the claims' tags."""
        self.installation.require_writable()
        self.require_signing()
        assert self.installation.keys is not None
        return self.installation.keys.index

    def require_signing(self) -> None:
        """Raise Refused where no event can be signed."""
        keys = self.installation.keys
        if keys is None or not keys.sign:
            raise Refused(
                f"The keys of this store ({keys.place if keys else 'none'}) read and verify, and don't sign: a backup "
                f"of keys has no writer.key and no log.key in it. Supply these two to change the store."
            )

    def event(self, kind: type[Kind], /, **fields: Any) -> Kind:
        """An event of this session, now. Raises Refused, naming the field, where a value is not allowed."""
        try:
            return kind(recorded_at=self.now(), actor=self.actor, via=dict(self.via), **fields)
        except ValidationError as error:
            raise Refused(explanation(error)) from error


def attempts() -> Iterator[int]:
    """Try as often as there is time for: others who change the same thing are put in order by the log."""
    began, number = time.monotonic(), 0
    while time.monotonic() - began < PATIENCE_SECONDS:
        yield number
        number += 1


def explanation(error: ValidationError) -> str:
    """What is wrong with a value, in one line."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    wrong = WORD if first["type"] == "string_pattern_mismatch" else first["msg"]
    return f"{field}: {wrong} (it was {repr_of(first['input']):.80}). Give another value; nothing was stored."
