"""Namespaces whose names look alike: no verb that looks in one hands out, counts or touches what is in another."""

from collections.abc import Callable, Iterator
from itertools import permutations

import pytest

from tallystick import Memory
from tallystick.errors import Refused

GROUPS = (
    ("team", "team%", "teams", "team_", "%", "_", "te%m", "t_am", "te*m", "te?m", "*", "tea", "TEAM", "Team", "tEam"),
    ("a", "\u0430", "\uff41", "\u00e0", "a.", "a'", 'a"', "a;--", "a\\", "aa"),
    ("org", "org/acme", "org/acme/user:ana", "org/acme2", "org/acm", "org/acme%", "org/acme_", "acme", "org/Acme"),
    ("caf\u00e9", "cafe", "CAF\u00c9", "caf\u00e8"), ("stra\u00dfe", "strasse", "STRASSE"),
    ("I", "i", "\u0131", "l", "1"), ("fi", "\ufb01"), ("K", "\u039a", "k"),
    ("x" * 64, "x" * 63), ("0", "o", "O", "\u041e"), ("null", "NULL", "None"), ("user:ana", "user-ana", "user.ana"),
)  # fmt: skip
NAMES = [name for group in GROUPS for name in group]
PAIRS = [pair for group in GROUPS for pair in permutations(group, 2)]


def secret(name: str) -> str:
    """The text that only this namespace holds."""
    return f"The secret of number {NAMES.index(name)} is kept in Lisbon"


READS: dict[str, Callable[[Memory, str], list[str]]] = {
    "recall": lambda memory, name: [hit.text for hit in memory.recall("secret Lisbon", namespaces=[name], limit=99)],
    "recall filtered": lambda memory, name: [
        hit.text for hit in memory.recall("secret", namespaces=[name], limit=99, tags=["t"], where={"m": 1})
    ],
    "search": lambda memory, name: [record.text for record in memory.search(namespaces=[name], limit=99)],
    "search forgotten": lambda memory, name: [
        record.text for record in memory.search(namespaces=[name], status=["forgotten", "superseded", "current"])
    ],
    "search counts": lambda memory, name: [secret(name)] * memory.search(namespaces=[name], limit=1).total,
    "namespaces count": lambda memory, name: [
        secret(name) for each in memory.namespaces() if each.name == name for _ in range(each.memories)
    ],
    "status counts": lambda memory, name: [secret(name)] * memory.status().namespaces[name],
    "context": lambda memory, name: [
        line[2:] for line in memory.recall("zebra", namespaces=[name]).context(9999).text.splitlines() if line[0] == "|"
    ],
    "pinned": lambda memory, name: [record.text for record in memory._opened.pinned(name)],
}
"""Every verb that looks in a namespace."""


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """One text in each namespace, pinned."""
    with Memory.temporary() as opened:
        for name in NAMES:
            opened.pin(opened.store(secret(name), namespace=name, tags=["t"], metadata={"m": 1}).id)
        yield opened


@pytest.mark.parametrize("verb", READS)
def test_no_verb_leaks_between_names_that_look_alike(memory: Memory, verb: str) -> None:
    """Each verb, asked for one namespace, hands out what is in that one, and nothing of any other."""
    for name in NAMES:
        assert READS[verb](memory, name) == [secret(name)], name


@pytest.mark.parametrize("verb", ["recall", "search"])
def test_the_namespace_a_memory_was_opened_with_leaks_nothing(memory: Memory, verb: str) -> None:
    """Whoever names no namespace looks in their own, exactly."""
    for name in NAMES:
        memory.namespace = name
        found = memory.recall("secret", limit=99) if verb == "recall" else memory.search()
        assert [each.text for each in found] == [secret(name)]


def test_the_past_leaks_nothing(memory: Memory) -> None:
    """Asked as of a position, each verb hands out what was in that namespace then, and nothing of any other."""
    with memory.at(memory.status().logs["memory"] - 1) as past:
        for name in NAMES:
            for verb in READS:
                assert READS[verb](past, name) == [secret(name)], (verb, name)


@pytest.mark.parametrize("verb", ["recall", "search"])
def test_a_subtree_holds_what_is_below_it_and_nothing_else(memory: Memory, verb: str) -> None:
    """`under=` goes by whole segments, however names are spelt."""
    for top in NAMES:
        below = {secret(name) for name in NAMES if name == top or name.startswith(f"{top}/")}
        found = memory.recall("secret", under=top, limit=99) if verb == "recall" else memory.search(under=top)
        assert {each.text for each in found} == below


def test_a_name_in_another_normal_form_is_refused(memory: Memory) -> None:
    """A name that is not NFC is no second namespace that looks like the first: it is refused everywhere."""
    for name in ("cafe\u0301", "\u1112\u1161\u11ab", "A\u030a", "\u212a"):
        for act in (
            lambda given: memory.recall("secret", namespaces=[given]), lambda given: memory.search(under=given),
            lambda given: memory.store("x", namespace=given), lambda given: memory.rename("team", given),
            lambda given: memory.merge(given, "team"),
        ):  # fmt: skip
            with pytest.raises(Refused, match="not allowed"):
                act(name)


@pytest.mark.parametrize(("one", "other"), PAIRS[:: max(1, len(PAIRS) // 40)])
def test_a_rename_touches_no_name_that_looks_alike(one: str, other: str) -> None:
    """A renamed namespace takes along its own memories only, and its old name leads to them and to no other."""
    with Memory.temporary() as memory:
        for name in (one, other):
            memory.store("one text for all", namespace=name)
        memory.rename(one, "elsewhere")
        assert [record.namespace for record in memory.search(namespaces=[one])] == ["elsewhere"]
        assert [record.namespace for record in memory.search(namespaces=[other])] == [other]
        assert memory.store("one text for all", namespace=other).status == "reinforced"
