"""Whether recall knows when it has nothing to say: `python -m benchmarks.abstention --data locomo10.json [--json]`.

Each conversation of LOCOMO is asked its own questions; those of the next conversation, its speakers' names put in
place of theirs (foreign: the same genre, and now and then answerable all the same); and questions on the functions of
Python's standard library (off topic). Relevance is that of the best hit. AUROC: how often a question of its own is more
relevant than one of the others. Abstained: how often `nothing_relevant` is said.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import shlex
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.locomo import Conversation, load, store
from benchmarks.running import machine
from tallystick import Memory
from tallystick.queries.answer import RELEVANT

OFF_TOPIC = 100
SHORTEST, LONGEST = 30, 120
LIMIT = 50


def off_topic() -> list[str]:
    """Questions on what functions of the standard library do, by the first sentence of their documentation."""
    library = Path(sysconfig.get_paths()["stdlib"])
    told = (ast.get_docstring(node) or "" for file in sorted(library.glob("*.py")) for node in _functions(file))
    sentences = {" ".join(each.split("\n\n")[0].split()).rstrip(".") for each in told}
    short = sorted(each for each in sentences if SHORTEST < len(each) < LONGEST and each[0].isupper())
    random.Random(1).shuffle(short)
    return [f"How do I {each[0].lower()}{each[1:]}?" for each in short[:OFF_TOPIC]]


def _functions(file: Path) -> Iterable[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.FunctionDef))


def foreign(other: Conversation, names: Sequence[str]) -> list[str]:
    """The questions of another conversation, as if they were on these speakers."""
    questions = [question.text for question in other.questions]
    for theirs, ours in zip(_speakers(other), names, strict=False):
        questions = [re.sub(rf"\b{re.escape(theirs)}\b", ours, question) for question in questions]
    return questions


def _speakers(conversation: Conversation) -> list[str]:
    return sorted({speaker for session in conversation.sessions for _, speaker, _ in session.turns})


def relevance(memory: Memory, namespace: str, questions: Iterable[str]) -> list[float]:
    """How relevant the most relevant hit of each question is; nought where there is none."""
    recalls = (memory.recall(question, namespaces=[namespace], limit=LIMIT) for question in questions)
    return [max((hit.relevance or 0.0 for hit in recall), default=0.0) for recall in recalls]


def auroc(own: Sequence[float], others: Sequence[float]) -> float:
    """The share of pairs in which the question of its own is the more relevant one; a tie is half a pair."""
    won = sum((a > b) + (a == b) / 2 for a in own for b in others)
    return won / (len(own) * len(others))


def measure(conversations: Sequence[Conversation], folder: Path) -> dict[str, Any]:
    """Ask every conversation, and say how the three sorts of questions were told apart."""
    found: dict[str, list[float]] = {"own": [], "foreign": [], "off topic": []}
    with Memory.open(folder / "store", keys=folder / "keys") as memory:
        for number, conversation in enumerate(conversations):
            store(memory, conversation)
            other = conversations[(number + 1) % len(conversations)]
            asked: Mapping[str, Sequence[str]] = {
                "own": [question.text for question in conversation.questions],
                "foreign": foreign(other, _speakers(conversation)),
                "off topic": off_topic(),
            }
            for sort, questions in asked.items():
                found[sort] += relevance(memory, conversation.name, questions)
            print(f"{conversation.name}: asked", file=sys.stderr, flush=True)
        used = memory.status().model
    return {
        "model": used,
        "questions": {sort: len(values) for sort, values in found.items()},
        "auroc": {sort: round(auroc(found["own"], found[sort]), 4) for sort in ("foreign", "off topic")},
        "abstained": {
            sort: round(100 * sum(value < RELEVANT for value in values) / len(values), 1)
            for sort, values in found.items()
        },
    }


def main() -> None:
    """Measure, and print a few lines or one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.abstention", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json, or gzipped")
    parser.add_argument("--first", type=int, default=0, help="leave out the conversations before this one")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = measure(load(options.data)[options.first :], Path(folder))
    report["machine"] = machine()
    report["command"] = shlex.join(["python", "-m", "benchmarks.abstention", *sys.argv[1:]])
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        for name, value in report.items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
