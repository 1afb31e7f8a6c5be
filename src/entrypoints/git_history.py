"""The history of a git repository, read as it is and stored as memories: one for each commit."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..errors import NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from ..memory import Memory

FILES_KEPT = 100
MAX_NAME = 512
CHUNK = 1 << 16
HASH_SHOWN = 12

_LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z, the last that a datetime holds
# Nothing is fetched, nothing of the user's set-up is run, and what a name looks like does not depend on it.
_ALWAYS = (
    "--no-pager",
    *("-c", "protocol.allow=never"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.showRoot=true"),
    *("-c", "diff.relative=false"),
)
_FIELDS = ("%H", "%P", "%an", "%at", "%B")


class Commit(NamedTuple):
    """One commit. At most FILES_KEPT of its `file_count` files are named; a merge has none of its own."""

    id: str
    parents: tuple[str, ...]
    author: str
    at: datetime | None
    message: str
    files: tuple[str, ...]
    file_count: int


class Imported(NamedTuple):
    """What an import came to: commits that are new, that were there already, and that were refused, with why."""

    new: int
    known: int
    refused: tuple[tuple[str, str], ...]


def count_commits(repository: Path) -> int:
    """How many commits the history of HEAD has; 0 where it has none yet.

    Raises NotFound, in git's own words, for what is no repository, and Unavailable where there is no git.
    """
    _ask(repository, "rev-parse", "--git-dir")
    if subprocess.run(_command(repository, "rev-parse", "-q", "--verify", "HEAD"), **_quietly()).returncode:
        return 0
    return int(_ask(repository, "rev-list", "--count", "HEAD"))


def read_commits(repository: Path, newest: int | None = None) -> Iterator[Commit]:
    """The commits of HEAD's history, or its newest so many, oldest first; what is not UTF-8 is replaced.

    Raises Unavailable where git stops on the way.
    """
    marker = secrets.token_hex(16)  # no file name and no message can be made to look like it
    form = f"--format={'%x00'.join((marker, *_FIELDS))}%x00"
    command = _command(
        repository, "log", "-z", "--reverse", "--no-color", "--no-ext-diff", "--no-textconv", "--encoding=UTF-8",
        "--name-only", f"--max-count={-1 if newest is None else newest}", form, "HEAD", "--",
    )  # fmt: skip
    with tempfile.TemporaryFile() as complaints:
        git = subprocess.Popen(
            command, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints
        )
        try:
            assert git.stdout is not None
            yield from _parse(_tokens(git.stdout), marker)
        except BaseException:
            git.kill()
            raise
        finally:
            git.communicate()
        if git.returncode:
            complaints.seek(0)
            raise Unavailable(
                f"git stopped reading {repository}: {_first_line(complaints.read())}. Mend it, then try again."
            )


def import_commits(
    memory: Memory, commits: Iterable[Commit], namespace: str | None, progress: Callable[[int], None]
) -> Imported:
    """Store each commit as a memory, in the order given. A commit that is there already changes nothing."""
    new, known, refused = 0, 0, []
    for number, commit in enumerate(commits, 1):
        try:
            outcome = memory.store(text_of(commit), namespace=namespace, **fields_of(commit))
        except Refused as error:
            refused.append((commit.id, str(error)))
        else:
            new += not outcome.repeated
            known += outcome.repeated
        progress(number)
    return Imported(new, known, tuple(refused))


def text_of(commit: Commit) -> str:
    """The message; the short hash and the files where the message is empty."""
    return commit.message or " ".join((commit.id[:HASH_SHOWN], *commit.files))


def fields_of(commit: Commit) -> dict[str, Any]:
    """The fields of the memory of a commit.

    Its key and its command id are the commit's: equal messages stay two memories, and a second import adds nothing.
    """
    name = f"git:{commit.id}"
    return {
        "kind": "commit",
        "source": "imported",
        "author": commit.author[:MAX_NAME] or None,
        "occurred_at": commit.at,
        "tags": ("git",),
        "key": name,
        "command_id": name,
        "metadata": {
            "commit": commit.id,
            "parents": list(commit.parents),
            "files": list(commit.files),
            "file_count": commit.file_count,
        },
    }


def _parse(tokens: Iterator[str], marker: str) -> Iterator[Commit]:
    """Commits from what git prints: the marker, the fields, then the files, the first after a line feed."""
    found = next(tokens, None) == marker
    while found:
        fields = [next(tokens, "") for _ in _FIELDS]
        files: list[str] = []
        count, found = 0, False
        for token in tokens:
            if token == marker:
                found = True
                break
            name = token if count else token.removeprefix("\n")
            if name:
                count += 1
                files += [name] if count <= FILES_KEPT else []
        yield _commit(fields, files, count)


def _commit(fields: list[str], files: list[str], count: int) -> Commit:
    identifier, parents, author, second, message = fields
    return Commit(
        identifier, tuple(parents.split()), author.strip(), _moment(second), message.strip(), tuple(files), count
    )


def _moment(second: str) -> datetime | None:
    if not second.isdecimal() or int(second) > _LAST_SECOND:
        return None
    return datetime.fromtimestamp(int(second), UTC)


def _tokens(stream: IO[bytes]) -> Iterator[str]:
    rest = b""
    while chunk := stream.read(CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        for token in whole:
            yield token.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def _ask(repository: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(_command(repository, *arguments), **_quietly())
    except FileNotFoundError as error:
        raise Unavailable("There is no git on this computer's PATH. Install it, then try again.") from error
    if done.returncode:
        raise NotFound(f"git can't read {repository}: {_first_line(done.stderr)}. Name a git repository.")
    return str(done.stdout.decode("utf-8", "replace").strip())


def _command(repository: Path, *arguments: str) -> list[str]:
    return ["git", *_ALWAYS, "-C", str(repository), *arguments]


def _quietly() -> dict[str, Any]:
    return {"env": _environment(), "stdin": subprocess.DEVNULL, "capture_output": True, "check": False}


def _environment() -> dict[str, str]:
    """The environment without what would point git at another repository, but with the user's own set-up of git."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith("GIT_") or n.startswith("GIT_CONFIG")}
    return {**kept, "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def _first_line(complaint: bytes) -> str:
    """What git gave up on, or the first thing it said."""
    lines = complaint.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
    fatal = [line for line in lines if line.startswith("fatal: ")]
    return (fatal or lines)[0].removeprefix("fatal: ").rstrip(".")
