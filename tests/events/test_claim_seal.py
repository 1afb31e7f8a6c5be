"""The seal of the claims: it moves with every append, and no other rows than those that were sealed pass for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import Claimed, LogDamaged
from tallystick.events.claim_seal import SETTING, ClaimSeal
from tallystick.events.claims import Claim, Release
from tallystick.events.installation import Installation
from tallystick.events.log import Append
from tallystick.events.settings import read_setting_within, write_setting

from .conftest import Place, stored

KEY = bytes(range(32))
EVENT = b"e" * 16
TAGS = [bytes([n]) * 16 for n in range(4)]

claims = st.dictionaries(st.sampled_from(TAGS), st.integers(0, 3)).map(dict.items)
ends = st.tuples(st.integers(0, 2), st.sampled_from([b"e" * 16, b"f" * 16]))


@given(claims, claims, ends, ends)
def test_a_seal_fits_its_claims_and_end_and_no_other(first: Any, second: Any, end: Any, other: Any) -> None:
    """Another row, another place, one row less or another end of the log is another seal; the order is none."""
    seal = ClaimSeal(KEY)
    assert seal.of(first, *end) == seal.of(sorted(first, reverse=True), *end)
    same = (dict(first), end) == (dict(second), other)
    assert (seal.of(first, *end) == seal.of(second, *other)) is same


def test_a_seal_depends_on_the_key() -> None:
    """Who has no key can make none."""
    assert ClaimSeal(KEY).of([(TAGS[0], 1)], 1, EVENT) != ClaimSeal(bytes(32)).of([(TAGS[0], 1)], 1, EVENT)


def test_two_seals_tell_nothing_of_a_row() -> None:
    """The difference of the seals at two ends is never that of the rows alone, which would fit a third end."""
    seal = ClaimSeal(KEY)
    differences = {
        int.from_bytes(seal.of([(TAGS[0], 1)], end, EVENT)[24:]) - int.from_bytes(seal.of([], end + 1, EVENT)[24:])
        for end in range(8)
    }
    assert len(differences) == 8


def append(installation: Installation, claims: Sequence[Claim] = (), releases: Sequence[Release] = ()) -> bytes:
    """Append a memory that claims and gives up these tags. Returns its stream."""
    log = installation.memory
    stream, nonce = log.new_stream()
    log.append(Append((log.opening(stream, stored("text", nonce)),), tuple(claims), tuple(releases)))
    return stream


@pytest.fixture
def held(installation: Installation) -> Installation:
    """An installation that was used."""
    return used(installation)


def used(installation: Installation) -> Installation:
    """Let three tags be claimed, one be taken over and one given up, each in an append of its own."""
    first = append(installation, [Claim(TAGS[0], 0), Claim(TAGS[1], 0)])
    append(installation, [Claim(TAGS[2], 0)])
    append(installation, [Claim(TAGS[0], 0, first)], [Release(TAGS[1], first)])
    append(installation)
    return installation


def check(installation: Installation) -> None:
    """Compare the claims with their seal."""
    with installation.datastore.transaction(commit=False) as cursor:
        installation.memory.check_claims(cursor)


def test_the_seal_moves_with_every_append(held: Installation) -> None:
    """Claimed, taken over, given up or nothing of it: the rows are those that are sealed."""
    assert held.datastore.rows("SELECT tag, place FROM claim ORDER BY tag") == [(TAGS[0], 3), (TAGS[2], 2)]
    check(held)


def test_an_append_that_fails_moves_nothing(held: Installation) -> None:
    """What is rolled back is not sealed."""
    with pytest.raises(LookupError), held.datastore.transaction(commit=True) as cursor:
        assert held.memory._seal is not None
        held.memory._seal.renew(cursor, 9, EVENT)
        raise LookupError
    with pytest.raises(Claimed):
        append(held, [Claim(TAGS[0], 0)])
    check(held)


CHANGES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a row is gone": ("DELETE FROM claim WHERE tag = ?", (TAGS[0],)),
    "all rows are gone": ("DELETE FROM claim", ()),
    "a row leads elsewhere": ("UPDATE claim SET place = 1 WHERE tag = ?", (TAGS[0],)),
    "a row leads nowhere": ("UPDATE claim SET place = 99 WHERE tag = ?", (TAGS[0],)),
    "a row has another tag": ("UPDATE claim SET tag = ? WHERE tag = ?", (TAGS[3], TAGS[0])),
    "a row that was given up is back": ("INSERT INTO claim VALUES (?, 1)", (TAGS[1],)),
    "two rows are swapped": ("UPDATE claim SET place = 5 - place", ()),
    "the seal is gone": ("DELETE FROM setting WHERE name = 'claims'", ()),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("opening", ["open", "read"])
def test_a_store_whose_claims_were_changed_is_not_opened(place: Place, name: str, opening: str) -> None:
    """Found when the files are not those that were closed, to be written or to be read."""
    statement, parameters = CHANGES[name]
    installation = used(place.create())
    with installation.datastore.transaction(commit=True) as cursor:
        cursor.execute(statement, parameters)
    installation.abandon()
    for _ in range(2):
        with pytest.raises(LogDamaged, match=r"sealed at size 5.*tallystick verify"):
            getattr(Installation, opening)(place.store, place.keys)


def test_older_claims_and_their_seal_do_not_fit_the_log(held: Installation) -> None:
    """Who puts back both tables as they were has a seal of another end of the log."""
    with held.datastore.transaction(commit=False) as cursor:
        rows = cursor.execute("SELECT tag, place FROM claim").fetchall()
        sealed = read_setting_within(cursor, SETTING)
    append(held, [Claim(TAGS[3], 0)])
    check(held)
    with held.datastore.transaction(commit=True) as cursor:
        cursor.execute("DELETE FROM claim")
        cursor.executemany("INSERT INTO claim VALUES (?, ?)", rows)
        write_setting(cursor, SETTING, sealed or b"")
    with pytest.raises(LogDamaged, match="sealed at size 6"):
        check(held)
    with pytest.raises(LogDamaged, match="sealed at size 6"):  # nor does the next append seal them
        append(held)


@pytest.mark.parametrize("broken", [lambda c: c.execute("DELETE FROM setting WHERE name = 'claims'"), None])
def test_an_append_without_a_seal_to_move_is_refused(held: Installation, broken: Callable[[Any], Any] | None) -> None:
    """Claims that are not sealed are not sealed by going on."""
    with held.datastore.transaction(commit=True) as cursor:
        if broken is None:
            write_setting(cursor, SETTING, bytes(40))
        else:
            broken(cursor)
    with pytest.raises(LogDamaged, match="sealed at size 5"):
        append(held)
    assert held.memory.follow().size == 5
