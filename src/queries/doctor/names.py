"""Namespaces that look alike, and so were probably meant to be one."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections import defaultdict
from collections.abc import Iterator

from ...projections.aliases import aliases
from ..namespaces import Namespace, namespaces
from .patient import Patient, Sign

_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝӏґкмтвнαορυνικτχεβηγıɡɑ",
    "aeopcyxijshdqwlrkmtbhaopuviktxebnyiga",
)
"""Letters of Cyrillic, of Greek and of phonetics that look like a Latin one, in lower case."""
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_SEPARATORS = re.compile(r"[-_.\u2010-\u2015\u2212]+")


def alike(patient: Patient) -> Iterator[Sign]:
    """Namespaces that differ only in what is easily typed wrong or not seen at all."""
    if patient.views is None:
        return
    with patient.views.reading() as cursor:
        found = namespaces(cursor, aliases(cursor))
    groups: dict[str, list[Namespace]] = defaultdict(list)
    for each in found:
        groups[skeleton(each.name)].append(each)
    for group in groups.values():
        into, *others = sorted(group, key=lambda each: (-each.memories, each.name))
        for other in others:
            yield Sign(
                f"The namespaces {_spelled(other)} and {_spelled(into)} look alike.",
                f"If they were meant to be one, run "
                f"{patient.run(f'merge {shlex.quote(other.name)} {shlex.quote(into.name)}')}.",
            )


def skeleton(name: str) -> str:
    """What is left of a name without case, width, look-alike letters, invisible ones, and how its parts are joined."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", name)).casefold()
    plain = "".join(c for c in plain.translate(_ALIKE) if unicodedata.category(c) not in ("Cf", "Zs"))
    return "/".join(_SEPARATORS.sub("-", segment).strip("-:") for segment in plain.split("/"))


def _spelled(namespace: Namespace) -> str:
    """A namespace, what can't be told from ASCII written out, and how many memories it has."""
    written = namespace.name if namespace.name.isascii() else f"{namespace.name} ({ascii(namespace.name)[1:-1]})"
    return f"{written} ({namespace.memories:,})"
