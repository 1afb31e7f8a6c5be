"""Watch Tallystick remember a git history, answer from it, prove it, and refuse what was tampered with."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from tallystick import Memory, Recall, Why
from tallystick.entrypoints import git_history
from tallystick.entrypoints.output import Column, Rows, laid_out, minute, short
from tallystick.errors import LogDamaged, TallystickError
from tallystick.events.driver import Datastore, File
from tallystick.events.envelope import payload_hash, read_entry, sign_entry
from tallystick.events.installation import Installation
from tallystick.events.merkle import Frontier, leaf_hash
from tallystick.events.signing import SeedSigner
from tallystick.visible import one_line

MOST_COMMITS = 500
FEWEST_COMMITS = 3
QUESTIONS = 3
HITS = 3
_PLACES = ("first", "second", "third")
CUT = 3
WIDTH = 110
DIGEST_DIGITS = 16

# Asked where the history has a commit with all these words: then it can be expected to know.
NATURAL = (
    ("can two programs make a new store at the same moment?", ("create", "store", "locked")),
    ("could an upgrade change which words a search matches?", ("stemmer", "views")),
    ("what is said when the mark is gone?", ("mark", "missing")),
)
# What the demo brings along for a repository with next to no history.
NOTES = (
    "Use WAL mode, so that readers are not held up while somebody writes",
    "The nightly backup runs at 02:30 and takes about ten minutes",
    "Ana prefers short answers, with the command first and the reason after it",
    "Deployments are frozen from the 20th of December until the new year",
    "The login page was slow because every request opened its own connection; a pool fixed it",
    "Integration tests need the environment variable DATABASE_URL",
    "We pay for storage by the gigabyte, so old logs are compressed after a week",
    "The office moved from Porto to Lisbon",
)
ABOUT_THE_NOTES = (
    "how do I let many readers in while data is being written?",
    "why did it take so long to sign in?",
    "which weeks of the year must we not ship anything?",
)


_HITS = (
    Column("#", right=True),
    Column("score", right=True),
    Column("id"),
    Column("when (UTC)"),
    Column("text", wide=True),
)


class Asked(NamedTuple):
    """A question, how it was made, and the id of the commit it is about, if about one."""

    text: str
    origin: str
    commit: str | None = None


class Show:
    """The screen: headings, notes and tables, for a terminal and for a pipe."""

    def __init__(self) -> None:
        console = Console(highlight=False, markup=False, emoji=False)
        self.console = console if console.is_terminal else Console(highlight=False, markup=False, width=WIDTH)
        self._steps = 0

    def heading(self, title: str) -> None:
        """The next step."""
        self._steps += 1
        self.say()
        self.say(f"{self._steps}. {title}", style="bold cyan")

    def say(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """A paragraph; an empty line without a text."""
        for line in Text(one_line(text), style=style).wrap(self.console, self.console.width - indent):
            line.rstrip()
            line.pad_left(indent)
            self.console.print(line)

    def table(self, columns: Sequence[Column], rows: Rows) -> None:
        """A table."""
        for line in laid_out(columns, rows, self.console.width):
            self.console.print(line)

    def bar(self) -> Progress:
        """A progress bar that stays when it is full; nothing in a pipe."""
        columns = (TextColumn("{task.description:<8}"), BarColumn(), MofNCompleteColumn())
        return Progress(*columns, console=self.console, disable=not self.console.is_terminal)


class Demo:
    """The demonstration, in a folder of its own."""

    def __init__(self, show: Show, folder: Path, repository: Path, commits: list[git_history.Commit]) -> None:
        self.show = show
        self.folder = folder
        self.repository = repository
        self.commits = commits
        self.store = folder / "store"
        self.keys = folder / "keys"
        self.older = folder / "older"

    def run(self) -> bool:
        """All of it. Returns whether everything turned out as it should."""
        Installation.create(self.store, self.keys).close({})
        self.remember()
        shutil.copytree(self.store, self.older)
        with self.opened() as memory:
            first = self.ask(memory)
            memory.store("Lunch is at noon on Fridays.", source="tool")
            self.explain(memory, first[1])
            self.verify(memory)
            equal = self.rebuild(memory)
        return self.tamper(*first) and equal

    def opened(self, model: str = "auto") -> Memory:
        """The store, open."""
        return Memory.open(self.store, keys=self.keys, namespace="demo", actor="user:demo", model=model, create=False)

    # ---- the good half

    def remember(self) -> None:
        """Store every commit, and make the vectors."""
        self.show.heading(f"Remember: the history of {self.repository.resolve().name or self.repository}")
        started = time.perf_counter()
        with self.show.bar() as bar, self.opened("none") as memory:
            task = bar.add_task("storing", total=len(self.commits))
            imported = git_history.import_commits(memory, self.commits, None, lambda n: bar.update(task, completed=n))
            for note in NOTES if len(self.commits) < FEWEST_COMMITS else ():
                memory.store(note, source="tool")
        seconds = time.perf_counter() - started
        self.show.say(
            f"{imported.new} commits, each one memory and one signed event on the disk, in {seconds:.1f} s"
            f" ({imported.new / seconds:.0f} a second)."
            f"{f' {len(imported.refused)} were refused.' if imported.refused else ''}"
        )
        if len(self.commits) < FEWEST_COMMITS:
            self.show.say(f"That is a short history, so the demo has added {len(NOTES)} notes of its own.")
        self.embed()

    def embed(self) -> None:
        """Make the vectors, where there is a model."""
        started = time.perf_counter()
        with self.show.bar() as bar, self.opened() as memory:
            task = bar.add_task("vectors", total=None)
            vectors = memory.embed(lambda missing: _progress(bar, task, missing))
            bar.update(task, total=max(vectors, 1), completed=max(vectors, 1))
        if vectors:
            self.show.say(f"{vectors} vectors, made on this computer, in {time.perf_counter() - started:.1f} s.")
        else:
            self.show.say("No embedding model is installed: recall goes by words alone.", style="yellow")

    def ask(self, memory: Memory) -> tuple[str, Recall]:
        """Ask three questions. Returns the first one that found something, and what it found."""
        self.show.heading("Recall: three questions")
        answers = []
        memory.recall("is anybody there?", limit=1)  # loads the model, so that the times below are those of a recall
        for question in questions(self.commits):
            started = time.perf_counter()
            recall = memory.recall(question.text, limit=HITS)
            self.answer(question, recall, time.perf_counter() - started)
            answers.append((question.text, recall))
        return next((answer for answer in answers if answer[1].hits), answers[0])

    def answer(self, question: Asked, recall: Recall, seconds: float) -> None:
        """A question, how it was made, and what came of it."""
        self.show.say()
        self.show.say(f"? {question.text}", style="bold")
        self.show.say(f"({question.origin})", style="dim", indent=2)
        rows = [
            (str(rank), f"{hit.score:.2f}", short(hit.id), _when(hit.record), hit.text)
            for rank, hit in enumerate(recall, 1)
        ]
        self.show.table(_HITS, rows)
        where = _rank(recall, question.commit)
        self.show.say(f"{where}In {1000 * seconds:.0f} ms. Receipt {recall.receipt}", style="dim")
        for missing in recall.degraded:
            self.show.say(f"Degraded: {missing}", style="yellow")

    def explain(self, memory: Memory, recall: Recall) -> None:
        """Why the first hit of a recall is there."""
        self.show.heading("Why: from the answer back to the signed event")
        if not recall.hits:
            self.show.say("Nothing was found, so there is nothing to explain.")
            return
        why = memory.why(recall.receipt, recall.hits[0].id)
        self.show.say(f"The recall itself is on record: position {why.logged.header.position} of the access log, "
                      f"claimed by {why.recalled.actor}, signed by key {why.logged.header.key.hex()}.")  # fmt: skip
        headings = ("event", "position", "claimed by", "signed by", "root of all before it")
        self.show.table([Column(heading) for heading in headings], _behind(why))
        scores = ", ".join(f"{stage} {'-' if s is None else f'{s:.3f}'}" for stage, s in why.hits[0].scores.items())
        self.show.say(f"Its scores: {scores}.")

    def verify(self, memory: Memory) -> None:
        """Check everything."""
        self.show.heading("Verify: every entry, signature, root, hash and key")
        started = time.perf_counter()
        report = memory.verify()
        rows = [
            (log.log, str(log.size), str(log.signatures), str(log.payloads), log.root[:DIGEST_DIGITS])
            for log in report.logs
        ]
        headings = ("log", "entries", "signatures", "payloads opened", "root")
        self.show.table([Column(heading) for heading in headings], rows)
        self.show.say(f"All of it is right. In {time.perf_counter() - started:.1f} s.", style="green")

    def rebuild(self, memory: Memory) -> bool:
        """Throw every view away and fold it from the log again. Returns whether nothing has changed by that."""
        self.show.heading("Rebuild: every view anew, from the log alone")
        started = time.perf_counter()
        found = memory.rebuild(reason="demo")
        seconds = time.perf_counter() - started
        rows = []
        for name, after in found.after.items():
            live = found.before.get(name, "")
            rows.append((name, live[:DIGEST_DIGITS], after[:DIGEST_DIGITS], "yes" if live == after else "NO"))
        self.show.table([Column(heading) for heading in ("view", "digest live", "digest rebuilt", "equal")], rows)
        equal = found.before == found.after
        verdict, style = ("Equal", "green") if equal else ("NOT equal", "bold red")
        self.show.say(f"{verdict}. In {seconds:.1f} s.", style=style)
        return equal

    # ---- the bad half

    def tamper(self, question: str, recall: Recall) -> bool:
        """Change copies of the store in ways its owner would not. Returns whether each was refused."""
        self.show.heading("Tamper: what somebody who can write to the disk could try")
        target = recall.hits[0].record.text_position if recall.hits else 1
        kept = self.attempt("Nothing: an untouched copy answers", question, lambda store: None)
        refused = [
            self.attempt(f"Edit one byte of the text at position {target}", question, lambda s: edit_a_byte(s, target)),
            self.attempt(f"Delete the newest {CUT} events", question, cut_the_tail),
            self.attempt("Put an older copy of the whole store in place", question, lambda s: roll_back(s, self.older)),
            self.attempt("Append a memory with the right root, signed by another key", question, forge),
        ]
        good = kept == 0 and all(code == 1 for code in refused)
        self.show.say()
        if good:
            self.show.say("Four of four refused, and named.", style="green")
        else:
            self.show.say("NOT as it should be: see above.", style="bold red")
        return good

    def attempt(self, what: str, question: str, tampering: Callable[[Path], None]) -> int:
        """Tamper with a copy of store and keys, ask it, and show what a user sees. Returns the exit code."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            copy = Path(name)
            shutil.copytree(self.store, copy / "store")
            shutil.copytree(self.keys, copy / "keys")
            tampering(copy / "store")
            done = _command(copy, question)
        self.show.say()
        self.show.say(what, style="bold")
        self.show.say(f"$ tallystick recall {question!r}", style="dim", indent=2)
        if done.returncode:
            self.show.say(done.stderr, style="red", indent=2)
        else:
            for line in done.stdout.splitlines()[: HITS + 1]:
                self.show.console.print(f"  {line}", no_wrap=True, overflow="ellipsis")
        return done.returncode


# ---- questions


def questions(commits: Sequence[git_history.Commit]) -> list[Asked]:
    """Three questions: natural ones where the history speaks of what they ask, else made from its rarest words."""
    if len(commits) < FEWEST_COMMITS:
        return [Asked(text, "a question about the demo's own notes") for text in ABOUT_THE_NOTES]
    natural = [
        Asked(text, f"asked because a commit of this history speaks of {', '.join(words)}", commit.id)
        for text, words in NATURAL
        if (commit := _speaking_of(commits, words)) is not None
    ]
    return natural if len(natural) == QUESTIONS else made_from(commits)


def _speaking_of(commits: Sequence[git_history.Commit], words: Sequence[str]) -> git_history.Commit | None:
    """The first commit whose message has all these words."""
    return next((c for c in commits if all(word in c.message.lower() for word in words)), None)


def made_from(commits: Sequence[git_history.Commit]) -> list[Asked]:
    """A question from each third of a history: the rarest words of one subject, in another order."""
    spread = Counter(word for commit in commits for word in set(_words(commit)))
    size = len(commits) // QUESTIONS
    thirds = [commits[n * size : (n + 1) * size] for n in range(QUESTIONS)]
    return [_question(max(third, key=lambda commit: _telling(commit, spread)), spread) for third in thirds]


def _question(commit: git_history.Commit, spread: Counter[str]) -> Asked:
    words = _words(commit)
    rarest = sorted(words, key=lambda word: (spread[word], words.index(word)))[:QUESTIONS]
    about = " ".join(sorted(rarest, key=words.index, reverse=True)) or short(commit.id)
    origin = (
        f"made from {len(rarest)} rare words of one commit's subject, in reverse order" if rarest else "a commit's id"
    )
    return Asked(f"what do we know about {about}?", origin, commit.id)


def _telling(commit: git_history.Commit, spread: Counter[str]) -> tuple[int, float]:
    words = _words(commit)
    return min(len(words), 2 * QUESTIONS), -sum(spread[word] for word in words) / max(len(words), 1)


def _words(commit: git_history.Commit) -> list[str]:
    """The words of a subject, once each, without the short ones."""
    subject = commit.message.partition("\n")[0].lower()
    return list(dict.fromkeys(re.findall(r"[^\W\d_]{4,}", subject)))


# ---- tampering, on files that nobody has open


def edit_a_byte(store: Path, position: int) -> None:
    """Change one byte of a sealed text."""
    (payload,) = _sql(store, "SELECT body FROM payload WHERE place = ?", position)[0]
    middle = len(payload) // 2
    edited = payload[:middle] + bytes([payload[middle] ^ 1]) + payload[middle + 1 :]
    _sql(store, "DROP TRIGGER payload_unchanged")
    _sql(store, "UPDATE payload SET body = ? WHERE place = ?", edited, position)


def cut_the_tail(store: Path) -> None:
    """Delete the newest events of the memory log, as if they had never been."""
    (size,) = _sql(store, "SELECT count(*) FROM entry WHERE log = 0")[0]
    _sql(store, "DROP TRIGGER entry_kept")
    _sql(store, "DELETE FROM payload WHERE place >= ? AND place < ?", size - CUT, size)
    _sql(store, "DELETE FROM entry WHERE place >= ? AND place < ?", size - CUT, size)


def roll_back(store: Path, older: Path) -> None:
    """Put an older copy in place."""
    shutil.rmtree(store)
    shutil.copytree(older, store)


def forge(store: Path) -> None:
    """Append an entry that fits in every way, but for who signed it."""
    entries = [entry for (entry,) in _sql(store, "SELECT entry FROM entry WHERE log = 0 ORDER BY place")]
    frontier = Frontier()
    for entry in entries:
        frontier = frontier.append(leaf_hash(entry))
    payload = b"what nobody has stored"
    header = read_entry(entries[-1])._replace(
        id=secrets.token_bytes(16),
        position=len(entries),
        root=frontier.root(),
        time=read_entry(entries[-1]).time + 1,
        stream=secrets.token_bytes(16),
        revision=0,
        payload_hash=payload_hash(payload),
        payload_length=len(payload),
    )
    forged = sign_entry(header, SeedSigner.generate())
    row = (header.position, 0, header.id, header.stream, header.revision, forged)
    _sql(store, "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", *row)
    _sql(store, "INSERT INTO payload VALUES (?, ?)", header.position, payload)


def _sql(store: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    datastore = Datastore(File(store / "log.db", LogDamaged))
    try:
        with datastore.transaction(commit=True) as cursor:
            return list(cursor.execute(statement, values).fetchall())
    finally:
        datastore.close()


def _command(copy: Path, question: str) -> subprocess.CompletedProcess[str]:
    """The command line, asked as a user would, in a process of its own."""
    program = "from tallystick.entrypoints.cli import main; main()"
    arguments = ["-C", str(copy / "store"), "recall", question, "--namespace", "demo", "--limit", str(HITS)]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "TALLYSTICK_KEYS": str(copy / "keys")},
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )


# ---- small things


def _progress(bar: Progress, task: Any, missing: int) -> None:
    total = bar.tasks[-1].total or missing
    bar.update(task, total=total, completed=total - missing)


def _behind(why: Why) -> list[tuple[str, ...]]:
    return [
        (
            logged.header.kind,
            str(logged.header.position),
            logged.event.actor,
            logged.header.key.hex(),
            logged.header.root.hex()[:DIGEST_DIGITS],
        )
        for logged in why.hits[0].events
    ]


def _rank(recall: Recall, commit: str | None) -> str:
    """Where the commit came that the question was about."""
    if commit is None:
        return ""
    found = [hit.record.stored.metadata.get("commit") for hit in recall]
    return f"That commit came {_PLACES[found.index(commit)]}. " if commit in found else "That commit did not come up. "


def _when(record: Any) -> str:
    stored = record.stored
    return minute(stored.recorded_at if stored.occurred_at is None else stored.occurred_at)


def _history(show: Show, repository: Path) -> list[git_history.Commit]:
    """The newest commits of a repository, oldest first."""
    total = git_history.count_commits(repository)
    if total > MOST_COMMITS:
        show.say(f"Its history has {total:,} commits; the demo takes the newest {MOST_COMMITS}.")
    return list(git_history.read_commits(repository, MOST_COMMITS)) if total else []


def main(arguments: Sequence[str]) -> int:
    """Run the demo. Returns 0 when all went as it should, 1 when not, 2 where there is no git history to read."""
    repository = Path(arguments[0] if arguments else ".")
    for name in [name for name in os.environ if name.startswith("TALLYSTICK_")]:
        del os.environ[name]
    show, started = Show(), time.perf_counter()
    show.say("Tallystick: memory that finds what it should, and can prove what it knew.", style="bold")
    try:
        commits = _history(show, repository)
    except TallystickError as error:
        print(f"demo: {error} Or: make demo REPO=PATH", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="tallystick-demo-") as folder:
        good = Demo(show, Path(folder), repository, commits).run()
    show.say(f"{time.perf_counter() - started:.0f} seconds in all.", style="dim")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
