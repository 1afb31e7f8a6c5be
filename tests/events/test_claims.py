"""A claim has one holder at a time, and its tag tells nobody what is claimed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import Claimed
from tallystick.events.claims import (
    PLACES,
    Claim,
    Release,
    claim_tag,
    command_tag,
    content_tag,
    holders_of,
    key_tag,
)
from tallystick.events.installation import Installation
from tallystick.events.kinds import Stored
from tallystick.events.log import Append

from .conftest import NOW, stored

INDEX_KEY = bytes(range(32))
TAG = b"t" * 16
OTHER = b"o" * 16

parts = st.lists(st.none() | st.text(max_size=8), max_size=4)


def memory(text: str, *, namespace: str = "test", subject: str | None = None, key: str | None = None) -> Stored:
    """A memory with what its claims depend on."""
    return Stored(recorded_at=NOW, actor="a", text=text, namespace=namespace, subject=subject, key=key)


def held(installation: Installation, tag: bytes = TAG) -> bytes | None:
    """The stream that holds a tag."""
    with installation.datastore.transaction(commit=False) as cursor:
        found = holders_of(cursor, [tag]).get(tag)
    return found[0] if found else None


def claim(installation: Installation, *tags: bytes, instead_of: bytes | None = None) -> bytes:
    """Append a memory that claims these tags; returns its stream."""
    log = installation.memory
    stream, nonce = log.new_stream()
    claims = tuple(Claim(tag, 0, instead_of) for tag in tags)
    log.append(Append((log.opening(stream, stored("text", nonce)),), claims))
    return stream


# ---- tags


@given(parts, parts)
def test_different_values_have_different_tags(first: list[str | None], second: list[str | None]) -> None:
    """However the parts are cut: none, empty, joined or apart."""
    tags = [claim_tag(INDEX_KEY, "n", "k", *values) for values in (first, second)]
    assert (tags[0] == tags[1]) is (first == second)
    assert len(tags[0]) == 16


@pytest.mark.parametrize(
    ("first", "second"),
    [(("ab", "c"), ("a", "bc")), (("a", None), ("a", "")), (("a",), ("a", None)), (("", "a"), ("a", ""))],
)
def test_parts_are_unambiguous(first: tuple[str | None, ...], second: tuple[str | None, ...]) -> None:
    """Where one part ends and the next begins counts, and nothing is not the empty text."""
    assert claim_tag(INDEX_KEY, "n", "k", *first) != claim_tag(INDEX_KEY, "n", "k", *second)


def test_a_tag_depends_on_the_key_the_namespace_and_the_kind() -> None:
    """A reader of log.db can't guess a text from its tag; namespaces and kinds of claim do not meet."""
    tags = {
        claim_tag(INDEX_KEY, "n", "content", "text"),
        claim_tag(bytes(32), "n", "content", "text"),
        claim_tag(INDEX_KEY, "m", "content", "text"),
        claim_tag(INDEX_KEY, "n", "key", "text"),
    }
    assert len(tags) == 4


@given(st.text(min_size=1).filter(lambda text: bool(text.strip())))
def test_equal_texts_have_one_tag(text: str) -> None:
    """Equal after NFC and without outer white space."""
    spelt = [memory(form) for form in (text, f" \n{text}\t", unicodedata.normalize("NFC", text))]
    assert len({content_tag(INDEX_KEY, each) for each in spelt}) == 1


@pytest.mark.parametrize(
    "other",
    [
        memory("Text"),
        memory("te xt"),
        memory("text", namespace="other"),
        memory("text", subject="user:ana"),
        memory("text", key="k"),
    ],
)
def test_what_differs_has_another_tag(other: Stored) -> None:
    """Case and inner space count, and so do namespace, subject and key."""
    assert content_tag(INDEX_KEY, other) != content_tag(INDEX_KEY, memory("text"))


def test_a_turn_of_a_thread_claims_no_text() -> None:
    """People repeat themselves in a conversation."""
    turn = Stored(recorded_at=NOW, actor="a", text="yes", namespace="test", thread="s1", place=1)
    assert content_tag(INDEX_KEY, turn) is None


def test_what_is_not_there_claims_nothing() -> None:
    """No key, no claim; no command id, no claim."""
    assert key_tag(INDEX_KEY, memory("text")) is None
    assert command_tag(INDEX_KEY, "test", None) is None
    assert key_tag(INDEX_KEY, memory("a", key="k")) == key_tag(INDEX_KEY, memory("b", key="k"))
    assert command_tag(INDEX_KEY, "test", "c") != key_tag(INDEX_KEY, memory("a", key="c"))


# ---- holders


def test_a_tag_has_one_holder(installation: Installation) -> None:
    """The second that claims it is told who holds it, since which position, and nothing of it is written."""
    first = claim(installation, TAG)
    with pytest.raises(Claimed) as refused:
        claim(installation, OTHER, TAG)
    assert (refused.value.tag, refused.value.holder, refused.value.position) == (TAG, first, 1)
    assert (held(installation), held(installation, OTHER)) == (first, None)
    assert installation.memory.follow().size == 2


def test_a_tag_is_taken_over_from_its_holder(installation: Installation) -> None:
    """Whoever names the present holder takes its place; whoever names a former one does not."""
    first = claim(installation, TAG)
    second = claim(installation, TAG, instead_of=first)
    with pytest.raises(Claimed) as refused:
        claim(installation, TAG, instead_of=first)
    assert refused.value.holder == second
    assert held(installation) == second


def test_a_tag_that_nobody_holds_is_not_taken_over(installation: Installation) -> None:
    """The claim says what it expects, and is told that it is wrong."""
    with pytest.raises(Claimed) as refused:
        claim(installation, TAG, instead_of=b"x" * 16)
    assert (refused.value.holder, refused.value.position) == (None, None)


def test_a_tag_is_given_up_by_its_holder_alone(installation: Installation) -> None:
    """A release by another stream does nothing."""
    log = installation.memory
    first = claim(installation, TAG)
    for holder in (b"x" * 16, first):
        stream, nonce = log.new_stream()
        release = Append((log.opening(stream, stored("other", nonce)),), releases=(Release(TAG, holder),))
        log.append(release)
        assert held(installation) == (None if holder == first else first)
    assert claim(installation, TAG) == held(installation)


def test_an_append_may_give_up_and_take_at_once(installation: Installation) -> None:
    """Releases come before claims, in one transaction."""
    log = installation.memory
    first = claim(installation, TAG)
    stream, nonce = log.new_stream()
    log.append(Append((log.opening(stream, stored("b", nonce)),), (Claim(TAG, 0),), (Release(TAG, first),)))
    assert held(installation) == stream


def test_a_claim_belongs_to_its_draft(installation: Installation) -> None:
    """Of several events in one append each claim is held by the stream of the one it names."""
    log = installation.memory
    streams = [log.new_stream() for _ in range(2)]
    drafts = tuple(log.opening(stream, stored("text", nonce)) for stream, nonce in streams)
    log.append(Append(drafts, (Claim(TAG, 1), Claim(OTHER, 0))))
    assert (held(installation), held(installation, OTHER)) == (streams[1][0], streams[0][0])


def test_claims_of_the_two_logs_do_not_meet(installation: Installation) -> None:
    """A place names log and position at once."""
    claim(installation, TAG)
    assert installation.datastore.rows("SELECT place FROM claim") == [(1,)]
    assert installation.access.recorder.identity.number * PLACES > 1
