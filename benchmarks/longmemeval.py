"""How well recall finds the turns that answer questions over long chat histories: `python -m benchmarks.longmemeval`.

LongMemEval (Wu et al., 2024): 500 questions, each with a history of its own. Get `longmemeval_s_cleaned.json` from the
data set xiaowu0162/longmemeval-cleaned; it may be gzipped. Evidence are the turns marked `has_answer`. Questions that
no turn answers (their ids end in `_abs`) are told apart: of them only how often recall says that nothing is relevant.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.locomo import Conversation, Question, Session, measure, report_table, store
from benchmarks.running import parser, say, tell
from benchmarks.scoring import ANSWERS, rate
from tallystick import Memory

UNANSWERED = "_abs"


def load(path: Path) -> list[Conversation]:
    """The histories of a LongMemEval file, each with its one question."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [_conversation(asked) for asked in json.load(file)]


def _conversation(asked: Mapping[str, Any]) -> Conversation:
    held = zip(asked["haystack_session_ids"], asked["haystack_dates"], asked["haystack_sessions"], strict=True)
    sessions = tuple(_session(f"{n} {name}", at, turns) for n, (name, at, turns) in enumerate(held))
    marked = (
        _name(session.name, number)
        for session, turns in zip(sessions, asked["haystack_sessions"], strict=True)
        for number, turn in enumerate(turns)
        if turn.get("has_answer")
    )
    question = Question(asked["question"], asked["question_type"], frozenset(marked))
    return Conversation(asked["question_id"], sessions, (question,))


def _session(name: str, at: str, turns: Sequence[Mapping[str, Any]]) -> Session:
    said = ((_name(name, number), turn["role"], turn["content"]) for number, turn in enumerate(turns))
    return Session(name, moment(at), tuple(turn for turn in said if turn[2].strip()))


def _name(session: str, number: int) -> str:
    return f"{session} {number}"


def moment(written: str) -> datetime:
    """When a session was: `2023/05/20 (Sat) 02:21`."""
    return datetime.strptime(written, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)


def is_answered(conversation: Conversation) -> bool:
    """Whether there is an answer to its question."""
    return not conversation.name.endswith(UNANSWERED)


def abstained(conversations: Sequence[Conversation], folder: Path, model: str) -> Iterator[bool]:
    """Of each question that no turn answers: whether recall says that nothing is relevant."""
    with Memory.open(folder / "unanswered", keys=folder / "unanswered-keys", model=model) as memory:
        for conversation in conversations:
            store(memory, conversation)
            recall = memory.recall(conversation.questions[0].text, limit=ANSWERS, namespaces=[conversation.name])
            yield recall.nothing_relevant
            tell(f"{conversation.name}: asked, without an answer")


def report_of(conversations: Sequence[Conversation], folder: Path, model: str) -> dict[str, Any]:
    """The answered questions' scores, and how often the others were abstained from."""
    report = measure([each for each in conversations if is_answered(each)], folder, model)
    said = list(abstained([each for each in conversations if not is_answered(each)], folder, model))
    return report | ({"abstained": {"n": len(said), **rate(sum(said), len(said))}} if said else {})


def _table(report: Mapping[str, Any]) -> str:
    said = report.get("abstained")
    unanswered = f"\n{said['percent']} % of {said['n']} unanswered questions abstained from" if said else ""
    return report_table(report) + unanswered


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table or one JSON document."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    takes = parser("benchmarks.longmemeval", __doc__)
    takes.add_argument("--data", type=Path, required=True, help="longmemeval_s_cleaned.json, or gzipped")
    takes.add_argument("--model", default="auto", help="auto, none, or the folder of an ONNX model")
    takes.add_argument("--first", type=int, help="so many questions only")
    options = takes.parse_args(given)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report = report_of(load(options.data)[: options.first], Path(folder), options.model)
    say(report, "benchmarks.longmemeval", given, _table)


if __name__ == "__main__":
    main()
