"""How well recall finds the turns that answer questions on long conversations: `python -m benchmarks.locomo --data F`.

LOCOMO: ten conversations of 5,882 turns, and 1,540 questions with their evidence turns (the adversarial ones left out).
Get `locomo10.json` from the repository snap-research/locomo (CC BY-NC 4.0); it may be gzipped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import platform
import re
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tallystick import Memory

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
DEPTHS = (1, 5, 10, 50)
DEEPEST = max(DEPTHS)
ANSWERS = 10
Z = 1.959964  # of a 95 % interval


class Question(NamedTuple):
    """What is asked, of which category, and the ids of the turns that hold the answer."""

    text: str
    category: str
    evidence: frozenset[str]


class Session(NamedTuple):
    """One sitting: its name, when it was, and its turns as (id, speaker, text)."""

    name: str
    at: datetime
    turns: tuple[tuple[str, str, str], ...]


class Conversation(NamedTuple):
    """One conversation, and what is asked of it."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


class Found(NamedTuple):
    """What one recall gave: the rank of the first evidence turn (0 for none), and the share of them in the first 10."""

    category: str
    rank: int
    share: float
    cpu_ms: float


# ---- the data


def load(path: Path) -> list[Conversation]:
    """The conversations of a LOCOMO file."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [_conversation(sample) for sample in json.load(file)]


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    spoken = sample["conversation"]
    numbers = sorted(int(found[1]) for name in spoken if (found := re.fullmatch(r"session_(\d+)", name)))
    sessions = tuple(
        Session(
            f"session_{number}",
            _moment(spoken[f"session_{number}_date_time"]),
            tuple((turn["dia_id"], turn["speaker"], _text(turn)) for turn in spoken[f"session_{number}"]),
        )
        for number in numbers
    )
    questions = tuple(
        Question(asked["question"], CATEGORIES[asked["category"]], evidence_of(asked["evidence"]))
        for asked in sample["qa"]
        if asked["category"] in CATEGORIES
    )
    return Conversation(sample["sample_id"], sessions, questions)


def _moment(written: str) -> datetime:
    return datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _text(turn: Mapping[str, Any]) -> str:
    """What was said, and what is seen on the picture that was shared with it."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares {caption}]" if caption else str(turn["text"])


def evidence_of(written: Sequence[str]) -> frozenset[str]:
    """The turns named as evidence, however they are written: `D8:6; D9:17`, `D:11:26`, `D30:05`."""
    named = re.findall(r"D:?(\d+):(\d+)", " ".join(written))
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in named)


# ---- what is measured


def store(memory: Memory, conversation: Conversation) -> dict[str, str]:
    """Store a conversation, a thread for each session, with every vector made. Returns the turn of each memory."""
    turns: dict[str, str] = {}
    for session in conversation.sessions:
        outcomes = memory.store_conversation(
            [{"author": speaker, "text": text} for _, speaker, text in session.turns],
            thread=session.name,
            occurred_at=session.at,
            namespace=conversation.name,
        )
        turns |= {outcome.id: turn for outcome, (turn, _, _) in zip(outcomes, session.turns, strict=True)}
    memory.embed()
    return turns


def ask(
    memory: Memory, conversation: Conversation, turns: Mapping[str, str], without: Sequence[str] = ()
) -> Iterator[Found]:
    """Ask every question of a conversation: what it costs to get ten memories, and where among 50 the evidence is."""
    for question in conversation.questions:
        before = time.process_time()
        memory.recall(question.text, limit=ANSWERS, namespaces=[conversation.name], without=without)
        cpu_ms = (time.process_time() - before) * 1000
        hits = memory.recall(question.text, limit=DEEPEST, namespaces=[conversation.name], without=without)
        given = [turns[hit.id] for hit in hits]
        rank = next((rank for rank, turn in enumerate(given, 1) if turn in question.evidence), 0)
        found = question.evidence.intersection(given[:ANSWERS])
        yield Found(question.category, rank, len(found) / max(1, len(question.evidence)), cpu_ms)


def measure(
    conversations: Sequence[Conversation], folder: Path, model: str, without: Sequence[str] = ()
) -> dict[str, Any]:
    """Store the conversations in one store, ask every question, and say how it went."""
    found: list[Found] = []
    seconds, size = 0.0, 0
    with Memory.open(folder / "store", keys=folder / "keys", model=model) as memory:
        memory.embed()  # loads the model
        for conversation in conversations:
            before = time.process_time()
            turns = store(memory, conversation)
            seconds += time.process_time() - before
            size += len(turns)
            found += ask(memory, conversation, turns, without)
            _tell(f"{conversation.name}: {size:,} turns stored, {len(found):,} questions asked")
        used = memory.status().model
    cpu = [each.cpu_ms for each in found]
    return {
        "model": used,
        "conversations": len(conversations),
        "overall": scores(found),
        "categories": {name: scores(group) for name in CATEGORIES.values() if (group := _of(found, name))},
        "recall_cpu_ms": {"p50": round(statistics.median(cpu), 2), "p95": round(_percentile(cpu, 95), 2)},
        "ingestion": {
            "turns": size,
            "cpu_seconds": round(seconds, 2),
            "turns_per_cpu_second": round(size / seconds, 1),
        },
    }


def _of(found: Sequence[Found], category: str) -> list[Found]:
    return [each for each in found if each.category == category]


def scores(found: Sequence[Found]) -> dict[str, Any]:
    """Of some questions, in per cent: hit@k with 95 % Wilson intervals, recall@10, and MRR within the first 50."""
    return {
        "n": len(found),
        **{f"hit@{k}": _rate(sum(0 < each.rank <= k for each in found), len(found)) for k in DEPTHS},
        "recall@10": round(100 * statistics.fmean(each.share for each in found), 1),
        "mrr": round(100 * statistics.fmean(1 / each.rank if each.rank else 0.0 for each in found), 1),
    }


def _rate(hits: int, n: int) -> dict[str, Any]:
    return {"percent": round(100 * hits / n, 1), "interval": [round(100 * end, 1) for end in wilson(hits, n)]}


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share."""
    share, spread = hits / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


# ---- what is printed


def table(report: Mapping[str, Any]) -> str:
    """The report for people."""
    lines = [f"{'':12} {'n':>5} " + " ".join(f"{f'hit@{k}':>18}" for k in DEPTHS) + f" {'recall@10':>10} {'MRR':>6}"]
    for name, row in {**report["categories"], "overall": report["overall"]}.items():
        cells = " ".join(f"{_cell(row[f'hit@{k}']):>18}" for k in DEPTHS)
        lines.append(f"{name:12} {row['n']:5} {cells} {row['recall@10']:10.1f} {row['mrr']:6.1f}")
    recall, ingestion = report["recall_cpu_ms"], report["ingestion"]
    return "\n".join(
        (
            *lines,
            f"recall of {ANSWERS}: {recall['p50']} ms CPU at the median, {recall['p95']} at the 95th percentile",
            f"ingestion, vectors included: {ingestion['turns']:,} turns in {ingestion['cpu_seconds']} s CPU, "
            f"{ingestion['turns_per_cpu_second']} a second",
            f"model {report['model']}; {report['machine']}; {report['command']}",
        )
    )


def _cell(rate: Mapping[str, Any]) -> str:
    low, high = rate["interval"]
    return f"{rate['percent']:.1f} ({low:.1f}-{high:.1f})"


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _span(written: str) -> tuple[int, int]:
    first, _, last = written.partition("-")
    return int(first), int(last or first) + 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table or one JSON document."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locomo", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json, or gzipped")
    parser.add_argument("--model", default="auto", help="auto, none, or the folder of an ONNX model")
    parser.add_argument("--without", nargs="*", default=(), metavar="STAGE", help="leave stages of the ranking out")
    parser.add_argument("--conversations", type=_span, metavar="FIRST-LAST", help="some only: 0-4")
    parser.add_argument("--folder", type=Path, help="where to put the store (default: the temporary directory)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    options = parser.parse_args(given)
    conversations = load(options.data)[slice(*(options.conversations or (None,)))]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report = measure(conversations, Path(folder), options.model, options.without)
    report |= {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "command": shlex.join(["python", "-m", "benchmarks.locomo", *given]),
    }
    print(json.dumps(report, indent=2) if options.json else table(report))


if __name__ == "__main__":
    main()
