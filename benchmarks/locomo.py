"""How well recall finds the turns that answer questions on long conversations: `python -m benchmarks.locomo --data F`.

LOCOMO: ten conversations of 5,882 turns, and 1,540 questions with their evidence turns (the adversarial ones left out).
Get `locomo10.json` from the repository snap-research/locomo (CC BY-NC 4.0); it may be gzipped.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.running import parser, say, tell
from benchmarks.scoring import ANSWERS, DEEPEST, Found, by_category, cpu_ms, found, scores, table
from tallystick import Memory
from tallystick.queries.answer import STAGES

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
HALF = 5
"""The constants of the ranking were chosen on so many conversations, the first ones."""

ALWAYS = [stage for stage in STAGES[1:] if stage != "rerank"]
"""The stages that are part of every recall."""


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
    memory: Memory, conversation: Conversation, turns: Mapping[str, str], ranking: Mapping[str, Any]
) -> Iterator[Found]:
    """Ask every question of a conversation: what it costs to get ten memories, and where among 50 the evidence is."""
    for question in conversation.questions:
        before = time.process_time()
        memory.recall(question.text, limit=ANSWERS, namespaces=[conversation.name], **ranking)
        spent = (time.process_time() - before) * 1000
        yield _look(memory, conversation, turns, question, ranking)._replace(cpu_ms=spent)


def _look(
    memory: Memory, conversation: Conversation, turns: Mapping[str, str], question: Question, ranking: Mapping[str, Any]
) -> Found:
    hits = memory.recall(question.text, limit=DEEPEST, namespaces=[conversation.name], **ranking)
    return found(question.category, [turns[hit.id] for hit in hits], question.evidence)


def together(conversations: Sequence[Conversation]) -> list[Conversation]:
    """The conversations as one: every thread, turn and question in one namespace, and none confused with another."""
    return [
        Conversation(
            "together",
            tuple(
                Session(
                    f"{one.name} {session.name}",
                    session.at,
                    tuple((f"{one.name} {turn}", speaker, text) for turn, speaker, text in session.turns),
                )
                for one in conversations
                for session in one.sessions
            ),
            tuple(
                each._replace(evidence=frozenset(f"{one.name} {turn}" for turn in each.evidence))
                for one in conversations
                for each in one.questions
            ),
        )
    ]


def measure(
    conversations: Sequence[Conversation], folder: Path, model: str, ranking: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """Store the conversations in one store, ask every question, and say how it went."""
    asked: list[Found] = []
    seconds, size = 0.0, 0
    with Memory.open(folder / "store", keys=folder / "keys", model=model) as memory:
        memory.embed()  # loads the model
        for conversation in conversations:
            before = time.process_time()
            turns = store(memory, conversation)
            seconds += time.process_time() - before
            size += len(turns)
            asked += ask(memory, conversation, turns, ranking)
            tell(f"{conversation.name}: {size:,} turns stored, {len(asked):,} questions asked")
        used = memory.status().model
    return {
        "model": used,
        "conversations": len(conversations),
        "overall": scores(asked),
        "categories": by_category(asked, dict.fromkeys((*CATEGORIES.values(), *(each.category for each in asked)))),
        "recall_cpu_ms": cpu_ms(asked),
        "ingestion": {
            "turns": size,
            "cpu_seconds": round(seconds, 2),
            "turns_per_cpu_second": round(size / seconds, 1),
        },
    }


def ablate(conversations: Sequence[Conversation], folder: Path, model: str) -> dict[str, Any]:
    """Ask every question with all stages, and again without each: scores of the first five conversations and of all."""
    arms: dict[str, list[list[Found]]] = {name: [] for name in ("all stages", *ALWAYS)}
    with Memory.open(folder / "store", keys=folder / "keys", model=model) as memory:
        for conversation in conversations:
            turns = store(memory, conversation)
            for name, asked in arms.items():
                ranking = {"without": [name] if name in ALWAYS else []}
                asked.append([_look(memory, conversation, turns, each, ranking) for each in conversation.questions])
            tell(f"{conversation.name}: asked with and without each stage")
        used = memory.status().model
    parts = {"conversations 0-4": slice(0, HALF), "all": slice(None)}
    return {
        "model": used,
        "ablations": {
            part: {name: scores([*chain.from_iterable(asked[span])]) for name, asked in arms.items()}
            for part, span in parts.items()
        },
    }


# ---- what is printed


def report_table(report: Mapping[str, Any]) -> str:
    """The report for people."""
    if "ablations" in report:
        parts = report["ablations"].items()
        rows = {
            f"{part}: {'' if name == 'all stages' else 'no '}{name}": row
            for part, of in parts
            for name, row in of.items()
        }
        return "\n".join((*table(rows), f"model {report['model']}"))
    recall, ingestion = report["recall_cpu_ms"], report["ingestion"]
    return "\n".join(
        (
            *table({**report["categories"], "overall": report["overall"]}),
            f"recall of {ANSWERS}: {recall['p50']} ms CPU at the median, {recall['p95']} at the 95th percentile",
            f"ingestion, vectors included: {ingestion['turns']:,} turns in {ingestion['cpu_seconds']} s CPU, "
            f"{ingestion['turns_per_cpu_second']} a second",
            f"model {report['model']}",
        )
    )


def _span(written: str) -> tuple[int, int]:
    first, _, last = written.partition("-")
    return int(first), int(last or first) + 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table or one JSON document."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    takes = parser("benchmarks.locomo", __doc__)
    takes.add_argument("--data", type=Path, required=True, help="locomo10.json, or gzipped")
    takes.add_argument("--model", default="auto", help="auto, none, or the folder of an ONNX model")
    takes.add_argument("--without", nargs="*", default=(), metavar="STAGE", help="leave stages of the ranking out")
    takes.add_argument("--rerank", action="store_true", help="have the first 20 judged by a cross-encoder")
    takes.add_argument("--ablations", action="store_true", help="leave out each stage in turn: one table of all")
    takes.add_argument("--as-chats", action="store_true", help="speakers are user and assistant; see benchmarks.chats")
    takes.add_argument("--together", action="store_true", help="all conversations in one namespace")
    takes.add_argument("--conversations", type=_span, metavar="FIRST-LAST", help="some only: 0-4")
    options = takes.parse_args(given)
    conversations = load(options.data)[slice(*(options.conversations or (None,)))]
    if options.as_chats:
        from benchmarks.chats import as_chats  # noqa: PLC0415  which is made of what is here

        conversations = as_chats(conversations)
    if options.together:
        conversations = together(conversations)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.ablations:
            report = ablate(conversations, Path(folder), options.model)
        else:
            report = measure(
                conversations, Path(folder), options.model, {"without": options.without, "rerank": options.rerank}
            )
    say(report, "benchmarks.locomo", given, report_table)


if __name__ == "__main__":
    main()
