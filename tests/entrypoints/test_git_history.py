"""The history of a git repository as memories."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.entrypoints.git_history import (
    FILES_KEPT,
    MAX_NAME,
    Commit,
    count_commits,
    fields_of,
    read_commits,
    text_of,
)
from tallystick.errors import NotFound, Unavailable

from .conftest import Tally

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this computer")

ODD_NAME = 'new\nline "quoted" \t.txt'


def git(repository: Path, *arguments: str, data: bytes = b"") -> str:
    """Run git in a repository, as nobody in particular, and return what it prints."""
    done = subprocess.run(
        ["git", "-C", str(repository), "-c", "user.name=A U Thor", "-c", "user.email=a@example.com", *arguments],
        input=data, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "replace").strip()


def commit(repository: Path, message: str, *names: str) -> str:
    """Commit files of these names, and return the commit's hash."""
    for name in names:
        (repository / name).write_text(message)
        git(repository, "add", "--", name)
    git(repository, "commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-m", message)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A repository without a commit."""
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    return repository


@pytest.fixture
def odd(empty: Path) -> Path:
    """A repository with one of everything that has ever surprised a reader of git log."""
    commit(empty, "Begin", "a.txt")
    commit(empty, "Subject\n\nBody, first line\n\n  indented\n", "b.txt", ODD_NAME)
    git(empty, "checkout", "-q", "-b", "side")
    commit(empty, "", "c.txt")
    git(empty, "checkout", "-q", "main")
    commit(empty, "WIP")
    commit(empty, "WIP", "d.txt")
    git(empty, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    tree = git(empty, "rev-parse", "HEAD^{tree}")
    latin = git(empty, "hash-object", "-t", "commit", "-w", "--stdin", data=(
        f"tree {tree}\nparent {git(empty, 'rev-parse', 'HEAD')}\nauthor Ren".encode() + b"\xe9 <r@x> 1700000000 +0530\n"
        b"committer X <x@x> 1700000000 +0000\n\ncaf\xe9 \x1b[31m\n"
    ))  # fmt: skip
    git(empty, "reset", "-q", "--hard", latin)
    return empty


def test_every_commit_is_read_oldest_first(odd: Path) -> None:
    """Merges, empty messages, equal messages and bodies are read as they are, parents before children."""
    found = list(read_commits(odd))
    assert len(found) == count_commits(odd) == 7
    assert found[0].message == "Begin"
    assert found[1].message == "Subject\n\nBody, first line\n\n  indented"
    assert [one.message for one in found].count("WIP") == 2
    position = {one.id: n for n, one in enumerate(found)}
    assert all(position[parent] < n for n, one in enumerate(found) for parent in one.parents)


def test_files_are_named_whatever_their_names(odd: Path) -> None:
    """Line feeds, quotes and tabs in a file's name come through; a merge has no files of its own."""
    found = {one.message: one for one in read_commits(odd)}
    assert set(found["Subject\n\nBody, first line\n\n  indented"].files) == {"b.txt", ODD_NAME}
    merge = found["Merge side"]
    assert (len(merge.parents), merge.files, merge.file_count) == (2, (), 0)


def test_bytes_that_are_no_text_are_replaced(odd: Path) -> None:
    """A message and a name in Latin-1 are read with the bytes that are not UTF-8 replaced."""
    last = list(read_commits(odd))[-1]
    assert (last.author, last.message) == ("Ren\ufffd", "caf\ufffd \x1b[31m")
    assert last.at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_an_empty_message_becomes_hash_and_files(odd: Path) -> None:
    """A commit that says nothing is remembered by its short hash and its files."""
    silent = next(one for one in read_commits(odd) if not one.message)
    assert text_of(silent) == f"{silent.id[:12]} c.txt"


@pytest.mark.parametrize("second", ["-1", "99999999999999", ""])
def test_a_date_that_is_none_is_left_out(empty: Path, second: str) -> None:
    """A commit whose date no calendar holds is read without one."""
    tree = git(empty, "write-tree")
    text = f"tree {tree}\nauthor A <a@x> {second} +0000\ncommitter A <a@x> 1700000000 +0000\n\nodd\n".encode()
    made = git(empty, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", data=text)
    git(empty, "update-ref", "refs/heads/main", made)
    (found,) = read_commits(empty)
    assert found.message == "odd"
    assert found.at in (None, datetime(1970, 1, 1, tzinfo=UTC))


def test_many_files_are_capped_and_counted(empty: Path) -> None:
    """Of a commit that touches many files the first are named, and all are counted."""
    commit(empty, "many", *(f"{n:04}.txt" for n in range(FILES_KEPT + 20)))
    (found,) = read_commits(empty)
    assert (len(found.files), found.file_count) == (FILES_KEPT, FILES_KEPT + 20)


def test_the_newest_are_read_oldest_first(odd: Path) -> None:
    """A number takes that many from the end of the history, in the same order."""
    assert [one.id for one in read_commits(odd, 3)] == [one.id for one in read_commits(odd)][-3:]


def test_a_bare_repository_and_a_folder_inside_one(odd: Path, tmp_path: Path) -> None:
    """A bare clone, the .git folder and a folder inside the work tree give the same history."""
    git(tmp_path, "clone", "-q", "--bare", str(odd), "bare.git")
    (odd / "inside").mkdir()
    places = (odd, tmp_path / "bare.git", odd / ".git", odd / "inside")
    assert len({tuple(one.id for one in read_commits(place)) for place in places}) == 1


def test_the_users_environment_does_not_lead_astray(odd: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """GIT_DIR and its like, and settings that change what git log prints, change nothing."""
    expected = list(read_commits(odd))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    for name, value in {"GIT_DIR": elsewhere / ".git", "GIT_WORK_TREE": elsewhere, "GIT_INDEX_FILE": "x"}.items():
        monkeypatch.setenv(name, str(value))
    settings = (
        "log.showSignature=true", "log.showRoot=false", "core.quotePath=true", "color.ui=always", "diff.relative=true",
        "log.follow=true", "core.pager=false", "format.pretty=oneline", "log.date=relative", "diff.noprefix=true",
        "i18n.logOutputEncoding=UTF-16", "core.fsmonitor=/bin/false", "diff.external=/bin/false",
    )  # fmt: skip
    for n, setting in enumerate(settings):
        name, _, value = setting.partition("=")
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{n}", name)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{n}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(settings)))
    (odd / "inside").mkdir()
    assert list(read_commits(odd / "inside")) == expected


def test_nothing_is_fetched(odd: Path, tmp_path: Path) -> None:
    """A partial clone is not filled up from its origin."""
    git(odd, "config", "uploadpack.allowFilter", "true")
    git(odd, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(tmp_path, "clone", "-q", "--bare", "--filter=tree:0", f"file://{odd}", "partial.git")
    packs = tmp_path / "partial.git" / "objects" / "pack"
    before = sorted(os.listdir(packs))
    with pytest.raises(Unavailable):
        list(read_commits(tmp_path / "partial.git"))
    assert sorted(os.listdir(packs)) == before


def test_nothing_of_the_repositorys_own_is_run(odd: Path, tmp_path: Path) -> None:
    """No hook, no signature checker, no monitor and no converter that a repository names is started."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        shutil.copy(program, odd / ".git" / "hooks" / name)
    for name in ("gpg.program", "core.fsmonitor", "core.pager", "diff.external", "diff.own.textconv"):
        git(odd, "config", name, str(program))
    git(odd, "config", "log.showSignature", "true")
    (odd / ".git" / "info" / "attributes").write_text("* diff=own\n")
    signed = (
        f"tree {git(odd, 'rev-parse', 'HEAD^{tree}')}\nparent {git(odd, 'rev-parse', 'HEAD')}\n"
        "author A <a@x> 1700000000 +0000\ncommitter A <a@x> 1700000000 +0000\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n abcd\n -----END PGP SIGNATURE-----\n\nsigned\n"
    )
    made = git(odd, "hash-object", "-t", "commit", "-w", "--stdin", data=signed.encode())
    (odd / ".git" / "refs" / "heads" / "main").write_text(made + "\n")
    assert [one.message for one in read_commits(odd)][-1] == "signed"
    assert not (tmp_path / "ran").exists()


def test_a_repository_without_commits_is_empty(empty: Path) -> None:
    """No commit yet is no error."""
    assert count_commits(empty) == 0


def test_what_is_no_repository_is_not_found(tmp_path: Path) -> None:
    """A folder without git, and a folder that is not there, are said to be that, in git's words."""
    with pytest.raises(NotFound, match="not a git repository"):
        count_commits(tmp_path)
    with pytest.raises(NotFound, match="No such file"):
        count_commits(tmp_path / "nowhere")


def test_a_computer_without_git_is_told_so(odd: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Without git on the PATH the message says to install it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="Install it"):
        count_commits(odd)


def test_a_damaged_repository_is_said_to_be(odd: Path) -> None:
    """Where an object is missing git stops, and so does the reading, with what git said."""
    middle = [one.id for one in read_commits(odd)][1]
    (odd / ".git" / "objects" / middle[:2] / middle[2:]).unlink()
    with pytest.raises(Unavailable, match="git stopped reading"):
        list(read_commits(odd))


# ---- as memories


def test_an_import_brings_every_commit_once(store: Tally, odd: Path) -> None:
    """Each commit is one memory, equal messages too; a second import changes nothing."""
    first = store("import", "git", str(odd), "--json")
    assert first.code == 0
    assert first.document == {"new": 7, "known": 0, "refused": [], "vectors": 0}
    assert store("status", "--json").document["memories"] == {"current": 7}
    size = store("status", "--json").document["logs"]["memory"]
    assert store("import", "git", str(odd), "--json").document == {"new": 0, "known": 7, "refused": [], "vectors": 0}
    assert store("status", "--json").document["logs"]["memory"] == size


def test_an_import_goes_on_where_history_has_grown(store: Tally, odd: Path) -> None:
    """Only what is new since the last import is stored."""
    store("import", "git", str(odd))
    commit(odd, "One more", "e.txt")
    shown = store("import", "git", str(odd))
    assert "new            1\n" in shown.out
    assert "there already  7\n" in shown.out


def test_a_commit_keeps_what_git_knew_of_it(store: Tally, odd: Path, project: Path) -> None:
    """Author, time, files, parents and hash are fields of the memory; its kind is commit and its source imported."""
    store("import", "git", str(odd))
    expected = next(one for one in read_commits(odd) if one.message.startswith("Subject"))
    (hit,) = store("recall", "indented body", "--limit", "1", "--json").document["hits"]
    memory = hit["memory"]
    assert (memory["kind"], memory["source"], memory["tags"], memory["author"]) == (
        "commit", "imported", ["git"], "A U Thor"
    )  # fmt: skip
    assert memory["text"] == expected.message
    assert memory["occurred_at"] == expected.at.isoformat().replace("+00:00", "Z") if expected.at else None
    assert memory["metadata"] == {
        "commit": expected.id, "parents": list(expected.parents), "files": list(expected.files), "file_count": 2
    }  # fmt: skip


def test_a_forgotten_commit_stays_forgotten(store: Tally, odd: Path) -> None:
    """A second import does not bring back what was forgotten."""
    store("import", "git", str(odd))
    (hit,) = store("recall", "indented body", "--limit", "1", "--json").document["hits"]
    store("forget", hit["memory"]["id"])
    assert store("import", "git", str(odd), "--json").document["new"] == 0
    assert store("get", hit["memory"]["id"], "--json").document["status"] == "forgotten"


def test_a_refused_commit_is_named_and_the_rest_goes_on(store: Tally, empty: Path) -> None:
    """A commit that a rule refuses is listed with its reason and ends the import with 1; the others are stored."""
    commit(empty, "before")
    message = b"x" * ((1 << 20) + 1)
    tree = git(empty, "write-tree")
    long = git(empty, "commit-tree", "-p", "HEAD", tree, data=message)
    git(empty, "reset", "-q", "--soft", long)
    commit(empty, "after")
    done = store("import", "git", str(empty), "--json")
    assert done.code == 1
    assert (done.document["new"], [one["commit"] for one in done.document["refused"]]) == (2, [long])
    shown = store("import", "git", str(empty))
    assert shown.code == 1
    assert long[:12] in shown.out


def test_an_empty_repository_and_no_repository(store: Tally, empty: Path, tmp_path: Path) -> None:
    """Nothing to import is no error; no repository is."""
    assert store("import", "git", str(empty), "--json").document["new"] == 0
    assert store("import", "git", str(tmp_path)).code == 1


def test_only_the_newest_where_that_is_asked(store: Tally, odd: Path) -> None:
    """--newest N imports N commits."""
    assert store("import", "git", str(odd), "--newest", "2", "--json").document["new"] == 2


def test_the_namespace_is_the_one_asked_for(store: Tally, odd: Path) -> None:
    """--namespace puts the commits into another namespace."""
    store("import", "git", str(odd), "--namespace", "repo:odd")
    assert store("recall", "merge side", "--json").document["hits"] == []
    assert store("recall", "merge side", "--namespace", "repo:odd", "--json").document["hits"]


def test_an_author_longer_than_a_name_may_be_is_cut() -> None:
    """A field that git does not limit and a memory does is cut, not refused."""
    endless = Commit("0" * 40, (), "x" * 9999, None, "message", (), 0)
    with Memory.temporary() as memory:
        memory.store(text_of(endless), **fields_of(endless))
    assert len(fields_of(endless)["author"]) == MAX_NAME
