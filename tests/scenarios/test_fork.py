"""A fork harms nothing: the child can't use what it inherited, and its end costs the parent nothing."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Place, Start

VERBS = (
    "store", "forget", "restore", "recall", "get", "history", "why", "events", "events begun before", "log", "verify",
    "status", "rebuild", "embed",
)  # fmt: skip


def played(case: str, place: Place, start: Start) -> list[list[Any]]:
    """What the processes of a case said, once the parent has ended well."""
    said: list[list[Any]] = start("fork_worker.py", place.store, place.keys, case).succeed()
    assert {line[1] for line in said if line[0] == "child ended"} <= {0}
    return said


def require_whole(place: Place, said: list[list[Any]], more: int = 0) -> None:
    """Every acknowledged memory is there, nothing else is (but `more` events), and all of it verifies."""
    acknowledged = [line[1] for line in said if line[0] == "stored"]
    assert acknowledged
    with place.open() as memory:
        assert memory.verify(views=True).logs[0].size == 1 + more + len(acknowledged)
        assert [memory.get(stream).id for stream in acknowledged] == acknowledged


def test_every_verb_says_that_it_was_forked(place: Place, start: Start) -> None:
    """In the child every verb raises Forked, an iteration begun before too; closing does nothing."""
    said = played("verbs", place, start)
    assert {line[0]: line[1] for line in said if line[0] in VERBS} == dict.fromkeys(VERBS, "Forked")
    require_whole(place, said, more=2)


@pytest.mark.parametrize("case", ["ends", "ends_inside_with", "threads", "another_store", "processes"])
def test_a_child_ends(case: str, place: Place, start: Start) -> None:
    """A child that ends normally, with finalisers, leaves the parent's store alone, whatever the parent is doing."""
    said = played(case, place, start)
    assert [line[1] for line in said if line[0] == "worker"] in ([], ["Forked"] * 4)
    require_whole(place, said)


def test_a_child_that_fails_says_so(place: Place, start: Start) -> None:
    """It ends with the status it asked for."""
    said = start("fork_worker.py", place.store, place.keys, "fails").succeed()
    assert said[-1] == ["child ended", 7]


def test_a_child_leaves_the_block_of_a_temporary_memory(place: Place, start: Start) -> None:
    """The folder is the parent's: the child does not remove it."""
    said = played("temporary", place, start)
    assert said[-1] == ["size", 1 + sum(line[0] == "stored" for line in said)]


@pytest.mark.parametrize("case", ["opens_again", "opens_again_elsewise", "opens_again_and_outlives"])
def test_a_child_opens_the_store_again(case: str, place: Place, start: Start) -> None:
    """Nothing acknowledged is lost, by parent or child: it works, or the child is told to start a fresh process."""
    require_whole(place, played(case, place, start))


def test_a_child_outlives_the_parents_memory(place: Place, start: Start) -> None:
    """What a child inherited keeps nobody from opening, and its end takes nothing from those who write then."""
    said = played("lingers", place, start)
    assert ["other ended", -9] in said
    require_whole(place, said)
