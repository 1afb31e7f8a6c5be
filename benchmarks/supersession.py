"""Whether what was corrected stays out of the answers: `python -m benchmarks.supersession [--sizes 1000 10000 100000]`.

A store of engineering notes grows (`benchmarks.notes`); every sixth corrects an earlier one, in one of four ways, a
quarter each. At each size it is asked for what was corrected, in words of which at most 30 % stand in the note.
complete@10: what holds now is among the first ten. forbidden@10: something that was corrected is. ahead: what holds now
stands before all that was corrected. Beside it two ways to look things up in a plain file of all the notes: grep (the
lines with the most of the question's words, the newest ones first) and the ten newest lines.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.notes import MARKED, SETTLED, SORTS, Journal, Note, Sort, content_words, overlap
from benchmarks.running import parser, say, tell
from benchmarks.scoring import ANSWERS, percentile, rate
from tallystick import Memory

SIZES = (1000, 10_000, 100_000)
QUESTIONS = 100
MOST_SHARED = 0.30
FIGURES = (f"complete@{ANSWERS}", f"forbidden@{ANSWERS}", "ahead")


class Asked(NamedTuple):
    """A question, what holds now, and what held before."""

    sort: Sort
    text: str
    current: str
    superseded: frozenset[str]


# ---- the store, and the file beside it


class Kept:
    """The notes in a store, each correction told in its own way."""

    def __init__(self, memory: Memory, journal: Journal) -> None:
        self._memory = memory
        self._journal = journal
        self._ids: dict[int, str] = {}

    def keep(self, notes: Sequence[Note]) -> None:
        """Store notes, few enough that none corrects another one of them."""
        revisions = [note for note in notes if note.corrects and self._journal.sort_of(note.fact) == "revise"]
        rows = [note for note in notes if note not in revisions]
        for note, outcome in zip(rows, self._memory.store_many([self._row(note) for note in rows]), strict=True):
            assert outcome.status in ("stored", "superseded"), outcome
            self._ids[note.fact] = outcome.id
        for note in revisions:
            self._memory.revise(self._ids[note.fact], text=note.text, occurred_at=note.at)

    def _row(self, note: Note) -> dict[str, Any]:
        row: dict[str, Any] = {"text": note.text, "occurred_at": note.at}
        sort = self._journal.sort_of(note.fact)
        if sort == "key":
            row["key"] = "/".join(self._journal.name_of(note.fact))
        if sort == "supersedes" and note.corrects:
            row["supersedes"] = self._ids[note.fact]
        return row


class Lines:
    """The notes as lines of a file."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._with: defaultdict[str, list[int]] = defaultdict(list)

    def append(self, notes: Iterable[Note]) -> None:
        """Write lines at the end."""
        for note in notes:
            for word in content_words(note.text):
                self._with[word].append(len(self._lines))
            self._lines.append(note.text)

    def grep(self, question: str) -> list[str]:
        """The lines with the most of the question's words, of those with as many the newest."""
        found = Counter(line for word in content_words(question) for line in self._with.get(word, ()))
        best = sorted(found, key=lambda line: (-found[line], -line))[:ANSWERS]
        return [self._lines[line] for line in best]

    def newest(self, _: str) -> list[str]:
        """The last lines, whatever is asked."""
        return self._lines[: -ANSWERS - 1 : -1]


# ---- what is asked, and how it went


def questions(journal: Journal) -> list[Asked]:
    """Up to a hundred questions of each sort, spread over all that was corrected."""
    asked = []
    for sort in SORTS:
        facts = journal.corrected(sort)
        for fact in facts[:: max(1, len(facts) // QUESTIONS)][:QUESTIONS]:
            *before, now = journal.statements[fact]
            asked.append(Asked(sort, journal.question(fact), now, frozenset(before)))
    return asked


def shared(asked: Sequence[Asked]) -> dict[str, float]:
    """How much of their content words questions and notes share. Raises ValueError for more than is allowed."""
    found = [overlap(each.text, note) for each in asked for note in (each.current, *each.superseded)]
    if max(found) > MOST_SHARED:
        raise ValueError(f"A question shares {max(found):.0%} of its words with a note. Mend the grammar.")
    return {"mean": round(sum(found) / len(found), 3), "most": round(max(found), 3)}


def judge(asked: Sequence[Asked], answer: Callable[[str], Sequence[str]]) -> dict[str, Any]:
    """How often the current statement and a superseded one are among ten, by sort, and of all marked ones together."""
    sorts: dict[str, list[tuple[bool, bool, bool]]] = {sort: [] for sort in ("marked", *SORTS)}
    for each in asked:
        given = answer(each.text)
        first = next((text for text in given if text == each.current or text in each.superseded), None)
        found = each.current in given, not each.superseded.isdisjoint(given), first == each.current
        sorts[each.sort].append(found)
        if each.sort in MARKED:
            sorts["marked"].append(found)
    return {
        sort: {"n": len(found)} | {name: rate(sum(column), len(found)) for name, column in zip(FIGURES, zip(*found))}
        for sort, found in sorts.items()
    }


def measure(sizes: Sequence[int], folder: Path, model: str) -> dict[str, Any]:
    """Let the store grow, and ask at each size."""
    journal, lines, spent = Journal(), Lines(), 0.0
    found: dict[str, Any] = {}
    with Memory.open(folder / "store", keys=folder / "keys", model=model) as memory:
        kept, size = Kept(memory, journal), 0
        for target in sizes:
            for first in range(size, target, SETTLED):
                notes = journal.write(min(SETTLED, target - first))
                lines.append(notes)
                before = time.process_time()
                kept.keep(notes)
                spent += time.process_time() - before
            before = time.process_time()
            memory.embed()
            spent += time.process_time() - before
            size = target
            found[f"{size:,}"] = _at(memory, lines, questions(journal)) | {
                "store_cpu_ms": round(spent * 1000 / size, 2)
            }
            tell(f"{size:,} notes: asked")
        used = memory.status().model
    return {"model": used, "sizes": found}


def _at(memory: Memory, lines: Lines, asked: Sequence[Asked]) -> dict[str, Any]:
    costs: list[float] = []

    def recalled(question: str) -> list[str]:
        before = time.process_time()
        hits = memory.recall(question, limit=ANSWERS)
        costs.append((time.process_time() - before) * 1000)
        return [hit.text for hit in hits]

    arms = {"tallystick": recalled, "grep": lines.grep, "newest": lines.newest}
    judged = {name: judge(asked, answer) for name, answer in arms.items()}
    cost = {"p50": round(percentile(costs, 50), 2), "p95": round(percentile(costs, 95), 2)}
    return {"shared": shared(asked), "arms": judged, "recall_cpu_ms": cost}


def _table(report: Mapping[str, Any]) -> str:
    lines = []
    for size, of in report["sizes"].items():
        words = of["shared"]
        lines.append(
            f"{size} notes; question and note share {words['mean']:.0%} of their words, {words['most']:.0%} at most; "
            f"recall {of['recall_cpu_ms']['p50']} ms CPU, store {of['store_cpu_ms']} ms"
        )
        for name, sorts in of["arms"].items():
            for sort, row in sorts.items():
                told = "".join(f"  {figure} {row[figure]['percent']:5}" for figure in FIGURES)
                lines.append(f"  {name:12} {sort:12} n {row['n']:4}{told}")
    return "\n".join((*lines, f"model {report['model']}"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table or one JSON document."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    takes = parser("benchmarks.supersession", __doc__)
    takes.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many notes, growing")
    takes.add_argument("--model", default="auto", help="auto, none, or the folder of an ONNX model")
    options = takes.parse_args(given)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report = measure(sorted(options.sizes), Path(folder), options.model)
    say(report, "benchmarks.supersession", given, _table)


if __name__ == "__main__":
    main()
