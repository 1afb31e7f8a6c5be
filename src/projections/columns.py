"""The memories of a namespace as recall looks at them: in arrays, a place for each, in order of their numbers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from .shelves import held_of

Integers = NDArray[numpy.int64]
Places = NDArray[numpy.intp]
Flags = NDArray[numpy.bool_]

KEPT_BYTES = 256 << 20
"""How much the namespaces that were asked last may take; those that one question asks always stay."""
GONE, FOR_EVER = -(2**63), 2**63 - 1
"""Until when a memory is to be found that is not current, and one that does not expire."""
NOWHERE = -1

ROW = numpy.dtype(
    [
        ("stream", ">u8", 2), ("turn", "i8"), ("at", "i8"), ("importance", "f8"), ("confidence", "f8"),
        ("reinforced", "i8"), ("author", "i4"), ("kind", "i4"), ("words", "i4"), ("cues", "i4"),
    ]
)  # fmt: skip
"""What is looked at of some memories only: NaN where there is no confidence, NOWHERE where there is no author."""
_SCANNED = {
    "numbers": "i8", "until": "i8", "threads": "i4", "previous": "i4", "following": "i4", "lengths": "i4",
    "windows": "i4",
}  # fmt: skip
_READ = (
    "SELECT number, CASE status WHEN ? THEN coalesce(expires_at, {1}) ELSE {0} END, thread, length, "
    "stream, coalesce(turn, 0), coalesce(occurred_at, recorded_at), importance, confidence, reinforced, author, kind, "
    "words, cues FROM memories WHERE namespace = ?"
).format(GONE, FOR_EVER)
_CHANGED = f"{_READ} AND number IN (SELECT number FROM vector WHERE position > ?) ORDER BY number"
_LAST = "SELECT coalesce(max(position), 0) FROM vector"


class Columns(NamedTuple):
    """A namespace at one moment. `numbers` ascend, and a memory keeps its place; gone ones keep theirs.

    `until` is the instant from which each is not found any more (microseconds). `previous` and `following` are the
    places of the current turns around it in its thread, `windows` how many words it and they have, NOWHERE where there
    is none. `current` counts the memories that are, `mean_window` is the mean of theirs. It does not
    change, whoever goes on.
    """

    namespace: str
    numbers: Integers
    until: Integers
    threads: NDArray[numpy.int32]
    previous: NDArray[numpy.int32]
    following: NDArray[numpy.int32]
    windows: NDArray[numpy.int32]
    rows: NDArray[numpy.void]
    authors: Sequence[str]
    kinds: Sequence[str]
    current: int
    mean_window: float

    def __len__(self) -> int:
        return len(self.numbers)

    def places(self, numbers: Integers) -> Places:
        """Where the memories of these numbers stand; those there are none of are left out."""
        found = numpy.searchsorted(self.numbers, numbers)
        known = found < len(self)
        known[known] = self.numbers[found[known]] == numbers[known]
        return found[known]


class _Codes(dict[str, int]):
    """A number for each text, given to it when it is first met: its place in `texts`, which only grows."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def __missing__(self, text: str) -> int:
        self.texts.append(text)
        self[text] = len(self)
        return self[text]

    def of(self, texts: Sequence[str | None]) -> list[int]:
        """The numbers of these texts; NOWHERE for none."""
        return [NOWHERE if text is None else self[text] for text in texts]


class _Namespace:
    """The columns of one namespace, grown and changed as the views change."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._size = 0
        self._arrays = {column: numpy.empty(0, dtype=kind) for column, kind in _SCANNED.items()}
        self._arrays["rows"] = numpy.empty(0, dtype=ROW)
        self._threads, self._authors, self._kinds = _Codes(), _Codes(), _Codes()
        self._position: int | None = None
        self.columns = self._snapshot()

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        return sum(array.nbytes for array in self._arrays.values())

    def follow(self, cursor: Any) -> None:
        """Take in what the views have gained."""
        (last,) = cursor.execute(_LAST).fetchone()
        namespace, status = held_of(self._name)
        if self._position is None:
            rows = cursor.execute(f"{_READ} ORDER BY number", (status, namespace)).fetchall()
        elif last > self._position:
            rows = cursor.execute(_CHANGED, (status, namespace, self._position)).fetchall()
        else:
            return
        if rows:
            self._take(rows)
            self.columns = self._snapshot()
        self._position = last

    def _take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take in rows. What was given before stays as it was: whoever ranks goes on with it."""
        numbers, until, threads, lengths, streams, turn, at, importance, confidence, reinforced, authors, *rest = zip(
            *rows, strict=True
        )
        kinds, words, cues = rest
        before = self._size
        places = self._placed(numpy.array(numbers, dtype=numpy.int64))
        if places[0] < before:
            self._arrays = {name: array.copy() for name, array in self._arrays.items()}
        scanned = self._arrays
        scanned["until"][places] = until
        scanned["threads"][places] = self._threads.of(threads)
        scanned["lengths"][places] = lengths
        row = scanned["rows"]
        row["stream"][places] = numpy.frombuffer(b"".join(streams), dtype=">u8").reshape(-1, 2)
        row["author"][places], row["kind"][places] = self._authors.of(authors), self._kinds.of(kinds)
        row["confidence"][places] = numpy.array(confidence, dtype=float)
        for column, values in {
            "turn": turn, "at": at, "importance": importance, "reinforced": reinforced, "words": words, "cues": cues,
        }.items():  # fmt: skip
            row[column][places] = values
        self._link(places)

    def _placed(self, numbers: Integers) -> Places:
        """The places of these numbers, which ascend; new ones come after all there are."""
        new = numbers[numpy.searchsorted(numbers, self._last, side="right") :]
        begin, self._size = self._size, self._size + len(new)
        if self._size > len(self._arrays["numbers"]):
            room = max(64, self._size, 2 * begin if begin else 0)
            self._arrays = {name: _grown(array, begin, room) for name, array in self._arrays.items()}
        self._arrays["numbers"][begin : self._size] = new
        return numpy.searchsorted(self._arrays["numbers"][: self._size], numbers)

    @property
    def _last(self) -> int:
        return int(self._arrays["numbers"][self._size - 1]) if self._size else NOWHERE

    def _link(self, changed: Places) -> None:
        """Find the turns around each memory anew, in the threads of those that have changed."""
        size = self._size
        around = {name: self._arrays[name].copy() for name in ("previous", "following", "windows")}
        self._arrays |= around
        threads, (previous, following, windows) = self._arrays["threads"], around.values()
        previous[changed] = following[changed] = NOWHERE
        affected = numpy.zeros(len(self._threads) + 1, dtype=bool)
        affected[threads[changed]] = True
        affected[NOWHERE] = False
        turns = numpy.flatnonzero(affected[threads[:size]])
        previous[turns] = following[turns] = NOWHERE
        touched = numpy.concatenate([changed, turns])
        turns = turns[self._arrays["until"][turns] > GONE]
        turns = turns[numpy.lexsort((self._arrays["rows"]["turn"][turns], threads[turns]))]
        first, second = turns[:-1], turns[1:]
        together = threads[first] == threads[second]
        previous[second[together]], following[first[together]] = first[together], second[together]
        lengths = numpy.append(self._arrays["lengths"][:size], 0)
        beside = lengths[previous[touched]] + lengths[following[touched]]
        windows[touched] = lengths[touched] + beside

    def _snapshot(self) -> Columns:
        shown = {name: array[: self._size] for name, array in self._arrays.items() if name != "lengths"}
        current = shown["until"] > GONE
        count = int(numpy.count_nonzero(current))
        mean = float(shown["windows"][current].mean()) if count else 0.0
        return Columns(
            namespace=self._name, authors=self._authors.texts, kinds=self._kinds.texts, current=count, mean_window=mean,
            **shown,
        )  # fmt: skip


class KeptColumns:
    """The columns of the namespaces that were asked last, kept up with the views."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Namespace] = OrderedDict()
        self._lock = Lock()

    def of(self, cursor: Any, namespaces: Sequence[str]) -> list[Columns]:
        """The columns of these namespaces, as the views are in this transaction.

        Newer where others went on since the transaction first read: let this be what it reads first.
        """
        with self._lock:
            found = []
            for name in namespaces:
                kept = self._kept.get(name) or _Namespace(name)
                kept.follow(cursor)
                self._kept[name] = kept
                self._kept.move_to_end(name)
                found.append(kept.columns)
            self._drop_oldest(len(found))
            return found

    def _drop_oldest(self, asked: int) -> None:
        taken = sum(kept.bytes for kept in self._kept.values())
        while taken > KEPT_BYTES and len(self._kept) > asked:
            taken -= self._kept.popitem(last=False)[1].bytes


def _grown(array: NDArray[Any], size: int, room: int) -> NDArray[Any]:
    """The same values in an array with more room."""
    grown = numpy.zeros(room, dtype=array.dtype)
    grown[:size] = array[:size]
    return grown
