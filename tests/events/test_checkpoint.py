"""Checkpoints are the signed notes of C2SP, in their one spelling, or refused."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.events.checkpoint import BadNote, Checkpoint, open_note, parse_vkey, sign
from tallystick.events.merkle import (
    EMPTY_ROOT,
    consistency_proof,
    leaf_hash,
    root_of,
    verify_consistency,
)
from tallystick.events.signing import SeedSigner

TESSERA_VKEY = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"
TESSERA_SIZES = range(16)

NAME = "example.com/log"
SIGNER = SeedSigner(bytes(range(32)))
STRANGER = SeedSigner(bytes(range(1, 33)))
ROOT = leaf_hash(b"an entry")
ROOT_LINE = b64encode(ROOT).decode()
CHECKPOINT = Checkpoint(NAME, 7, ROOT)
NOTE = sign(CHECKPOINT, NAME, SIGNER)


def signature_line(text: str, signer: SeedSigner = SIGNER, name: str = NAME) -> str:
    """A note's signature line over any text, as C2SP signed-note describes it."""
    key_id = sha256(name.encode() + b"\n\x01" + signer.public).digest()[:4]
    return f"— {name} {b64encode(key_id + signer.sign(text.encode())).decode()}\n"


def vkey(public: bytes, name: str = NAME, algorithm: bytes = b"\x01") -> str:
    """A verifier key whose hash fits."""
    key_hash = sha256(name.encode() + b"\n" + algorithm + public).hexdigest()[:8]
    return f"{name}+{key_hash}+{b64encode(algorithm + public).decode()}"


def tessera(shared: Path) -> Path:
    """The folder of the signed log that others have written."""
    return shared / "vectors" / "tessera_log"


def bundle_entries(bundle: bytes) -> list[bytes]:
    """The entries of a C2SP tlog-tiles bundle, each prefixed with its length as uint16be."""
    entries = []
    while bundle:
        end = 2 + int.from_bytes(bundle[:2], "big")
        entries.append(bundle[2:end])
        bundle = bundle[end:]
    return entries


def leaves_of(shared: Path, size: int) -> list[bytes]:
    """The leaf hashes at a size, computed from its entry bundle."""
    bundle = tessera(shared) / "tile" / "entries" / "000.p" / str(size)
    return [leaf_hash(entry) for entry in bundle_entries(bundle.read_bytes())] if size else []


def test_the_note_is_the_text_that_c2sp_describes() -> None:
    """Three lines, an empty line, and one signature that covers the three lines."""
    text = f"{NAME}\n7\n{ROOT_LINE}\n"
    assert CHECKPOINT.text() == text
    assert f"{text}\n{signature_line(text)}" == NOTE


@given(st.text("abcé/. ", min_size=1), st.integers(1, 2**64 - 1), st.binary(min_size=32, max_size=32))
def test_every_checkpoint_round_trips(origin: str, size: int, root: bytes) -> None:
    """What is signed is what is read."""
    checkpoint = Checkpoint(origin, size, root)
    assert open_note(sign(checkpoint, NAME, SIGNER), NAME, SIGNER.public) == checkpoint


def test_an_empty_log_has_a_checkpoint() -> None:
    """Size 0 goes with the root of the empty tree."""
    checkpoint = Checkpoint(NAME, 0, EMPTY_ROOT)
    assert open_note(sign(checkpoint, NAME, SIGNER), NAME, SIGNER.public) == checkpoint


@pytest.mark.parametrize(
    "checkpoint",
    [
        Checkpoint("", 7, ROOT),
        Checkpoint("two\nlines", 7, ROOT),
        Checkpoint("a\ttab", 7, ROOT),
        Checkpoint("\ud800", 7, ROOT),
        Checkpoint(NAME, -1, ROOT),
        Checkpoint(NAME, 2**64, ROOT),
        Checkpoint(NAME, 7, ROOT[:31]),
        Checkpoint(NAME, 0, ROOT),
    ],
    ids=repr,
)
def test_a_checkpoint_that_can_not_be_written_is_not_signed(checkpoint: Checkpoint) -> None:
    """A signature is for ever: nothing malformed gets one."""
    with pytest.raises(BadNote):
        sign(checkpoint, NAME, SIGNER)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\nb", "a\tb", "a\x00b", "\ud800"], ids=repr)
def test_a_key_name_has_no_space_and_no_plus(name: str) -> None:
    """A name that could be read as two things names nothing, for signing and for opening."""
    with pytest.raises(BadNote, match="can't name a key"):
        sign(CHECKPOINT, name, SIGNER)
    with pytest.raises(BadNote, match="can't name a key"):
        open_note(NOTE, name, SIGNER.public)


def test_any_changed_character_is_refused() -> None:
    """Nothing in a note with one signature can be changed, spelling included."""
    for place, character in enumerate(NOTE):
        changed = NOTE[:place] + ("B" if character == "A" else "A") + NOTE[place + 1 :]
        with pytest.raises(BadNote):
            open_note(changed, NAME, SIGNER.public)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{NAME}\n07\n{ROOT_LINE}\n", id="a leading zero"),
        pytest.param(f"{NAME}\n00\n{b64encode(EMPTY_ROOT).decode()}\n", id="two zeros"),
        pytest.param(f"{NAME}\n+7\n{ROOT_LINE}\n", id="a plus sign"),
        pytest.param(f"{NAME}\n-7\n{ROOT_LINE}\n", id="a negative size"),
        pytest.param(f"{NAME}\n 7\n{ROOT_LINE}\n", id="a space"),
        pytest.param(f"{NAME}\n7 \n{ROOT_LINE}\n", id="a space after"),
        pytest.param(f"{NAME}\n1_0\n{ROOT_LINE}\n", id="a digit separator"),
        pytest.param(f"{NAME}\n\u0667\n{ROOT_LINE}\n", id="a digit of another script"),
        pytest.param(f"{NAME}\n7.0\n{ROOT_LINE}\n", id="a fraction"),
        pytest.param(f"{NAME}\n\n{ROOT_LINE}\n", id="no size"),
        pytest.param(f"{NAME}\n{2**64}\n{ROOT_LINE}\n", id="more than 64 bits"),
        pytest.param(f"{NAME}\n{'9' * 5000}\n{ROOT_LINE}\n", id="a size of 5000 digits"),
        pytest.param(f"{NAME}\n0\n{ROOT_LINE}\n", id="an empty tree with a root"),
        pytest.param(f"\n7\n{ROOT_LINE}\n", id="no origin"),
        pytest.param(f"{NAME}\n7\n", id="no root"),
        pytest.param(f"{NAME}\n7\n\n", id="an empty root"),
        pytest.param(f"{NAME}\n7\n{ROOT_LINE}\nextension\n", id="an extension line"),
        pytest.param(f"{NAME}\n7\n{ROOT_LINE}\n\n", id="an empty line"),
        pytest.param(f"{NAME}\r\n7\r\n{ROOT_LINE}\r\n", id="carriage returns"),
        pytest.param(f"{NAME}\t\n7\n{ROOT_LINE}\n", id="a control character"),
        pytest.param(f"{NAME}\n7\n{b64encode(ROOT[:31]).decode()}\n", id="a short root"),
        pytest.param(f"{NAME}\n7\n{b64encode(ROOT + b'x').decode()}\n", id="a long root"),
        pytest.param(f"{NAME}\n7\n{ROOT_LINE[:-1]}\n", id="base64 without padding"),
        pytest.param(f"{NAME}\n7\n{ROOT_LINE}=\n", id="base64 with more padding"),
        pytest.param(f"{NAME}\n7\n {ROOT_LINE}\n", id="base64 with a space"),
        pytest.param(f"{NAME}\n7\n{ROOT_LINE[:-2]}{chr(ord(ROOT_LINE[-2]) + 1)}=\n", id="base64 with spare bits"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_signed_text_in_another_spelling_is_refused(text: str) -> None:
    """A good signature does not excuse a text that others may read differently."""
    with pytest.raises(BadNote):
        open_note(f"{text}\n{signature_line(text)}", NAME, SIGNER.public)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda note: note.replace("\u2014", "-"), id="a hyphen for the dash"),
        pytest.param(lambda note: note.replace("\u2014 ", "\u2014"), id="no space after the dash"),
        pytest.param(lambda note: note.replace("\u2014 ", ""), id="no dash"),
        pytest.param(lambda note: note.replace(f" {NAME} ", f"  {NAME} "), id="two spaces"),
        pytest.param(lambda note: note.replace(f" {NAME} ", f" {NAME}  "), id="two spaces after"),
        pytest.param(lambda note: note.replace(f" {NAME} ", " "), id="no name"),
        pytest.param(lambda note: note[:-1], id="no newline at the end"),
        pytest.param(lambda note: note + "\n", id="a newline too many"),
        pytest.param(lambda note: note + "more", id="more after the end"),
        pytest.param(lambda note: "\n" + note, id="a newline before"),
        pytest.param(lambda note: note.replace("\n\n", "\n"), id="no empty line"),
        pytest.param(lambda note: note.replace("\n\n", "\n\n\n"), id="two empty lines"),
        pytest.param(lambda note: note.replace("\n", "\r\n"), id="carriage returns"),
        pytest.param(lambda note: note[: note.index("\n\n") + 2], id="no signature"),
        pytest.param(lambda note: note[: note.index("\n\n") + 1], id="text alone"),
        pytest.param(lambda note: note[:-2] + "\n", id="base64 without padding"),
        pytest.param(lambda note: f"{note[:-3]}{chr(ord(note[-3]) + 1)}=\n", id="base64 with spare bits"),
        pytest.param(lambda note: note + f"\u2014 {NAME}\n", id="a line without a signature"),
        pytest.param(lambda note: note + f"\u2014 {NAME} AAAA\n", id="a line without a whole key id"),
        pytest.param(lambda note: note + f"\u2014 {NAME} AAAAAA==\n", id="a line with a key id alone"),
        pytest.param(lambda note: note + "\u2014 a+b AAAAAAAA\n", id="a line with a plus in the name"),
        pytest.param(lambda note: note + signature_line("another text"), id="a second, bad signature"),
        pytest.param(lambda note: "\ud800" + note, id="half a surrogate pair"),
        pytest.param(lambda note: note + signature_line("", STRANGER) * 4000, id="too many signatures"),
        pytest.param(lambda note: "", id="nothing"),
    ],
)
def test_a_malformed_note_is_refused(change: Callable[[str], str]) -> None:
    """Every line of a note is checked, those of other signers too."""
    with pytest.raises(BadNote):
        open_note(change(NOTE), NAME, SIGNER.public)


def test_signatures_of_others_are_ignored() -> None:
    """Witnesses sign beside the log: sixteen of them, before it or after it, by any algorithm."""
    text, _, ours = NOTE.partition("\n\n")
    others = [signature_line(f"{text}\n", STRANGER, f"witness{number}") for number in range(14)]
    same_name = signature_line("another text", STRANGER)
    long = f"— example.com/witness {b64encode(bytes(4900)).decode()}\n"
    for lines in ([ours, *others, same_name, long], [same_name, long, *others, ours]):
        assert open_note(f"{text}\n\n{''.join(lines)}", NAME, SIGNER.public) == CHECKPOINT


def test_a_note_without_our_signature_is_refused() -> None:
    """Another key, or our key under another name, is not our signature."""
    for name, public in ((NAME, STRANGER.public), ("example.com/other", SIGNER.public)):
        with pytest.raises(BadNote, match="no signature by"):
            open_note(NOTE, name, public)


def test_a_verifier_key_is_read() -> None:
    """Name and key, in the form that other tools print, also with a plus in the base64."""
    publics = [SeedSigner(bytes([number] * 32)).public for number in range(16)]
    assert any("+" in b64encode(b"\x01" + public).decode() for public in publics)
    for public in publics:
        assert parse_vkey(vkey(public)) == (NAME, public)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param("", id="nothing"),
        pytest.param(NAME, id="a name alone"),
        pytest.param(vkey(SIGNER.public).rpartition("+")[0], id="no key"),
        pytest.param(vkey(SIGNER.public).replace(NAME, "example.com/other"), id="another name"),
        pytest.param(vkey(SIGNER.public).replace("+", "+0", 1), id="a long hash"),
        pytest.param(vkey(SIGNER.public, name="UPPER").replace("+", "+A", 1), id="a hash that is not hexadecimal"),
        pytest.param(vkey(SIGNER.public, name="a b"), id="a space in the name"),
        pytest.param(vkey(SIGNER.public, name=""), id="no name"),
        pytest.param(vkey(SIGNER.public, algorithm=b"\x04"), id="another algorithm"),
        pytest.param(vkey(SIGNER.public, algorithm=b""), id="no algorithm"),
        pytest.param(vkey(SIGNER.public[:31]), id="a short key"),
        pytest.param(vkey(SIGNER.public + b"x"), id="a long key"),
        pytest.param(vkey(b"\x01" + bytes(31)), id="a key of small order"),
        pytest.param(vkey(SIGNER.public).rstrip("=") + "=!", id="no base64"),
        pytest.param(vkey(SIGNER.public) + "\n", id="a newline after it"),
    ],
)
def test_a_bad_verifier_key_is_refused(bad: str) -> None:
    """A key mistyped, or not to be trusted, is found when it is given."""
    with pytest.raises(BadNote):
        parse_vkey(bad)


def test_a_verifier_key_with_the_hash_of_another_is_refused() -> None:
    """The hash guards against a key copied under the wrong name, and does not stand for the algorithm."""
    key_hash, encoded = vkey(SIGNER.public).split("+", 2)[1:]
    other_algorithm = b64encode(b"\x04" + SIGNER.public).decode()
    with pytest.raises(BadNote, match="does not have the hash"):
        parse_vkey(f"{NAME}+{vkey(STRANGER.public).split('+')[1]}+{encoded}")
    with pytest.raises(BadNote, match="not for Ed25519"):
        parse_vkey(f"{NAME}+{key_hash}+{other_algorithm}")


@pytest.mark.parametrize("size", TESSERA_SIZES)
def test_checkpoints_of_another_log_verify(shared: Path, size: int) -> None:
    """Signature, spelling and root are those of Tessera, from its entries and from its tile."""
    name, public = parse_vkey(TESSERA_VKEY)
    note = (tessera(shared) / f"checkpoint.{size}").read_text(encoding="utf-8")
    leaves = leaves_of(shared, size)
    assert open_note(note, name, public) == Checkpoint("example.com/log/testdata", size, root_of(leaves))
    if size:
        tile = (tessera(shared) / "tile" / "0" / "000.p" / str(size)).read_bytes()
        assert tile == b"".join(leaves)


def test_checkpoints_of_another_log_are_consistent(shared: Path) -> None:
    """Every pair of its checkpoints has a proof, and no proof for any other root."""
    name, public = parse_vkey(TESSERA_VKEY)
    notes = [(tessera(shared) / f"checkpoint.{size}").read_text(encoding="utf-8") for size in TESSERA_SIZES]
    roots = [open_note(note, name, public).root for note in notes]
    leaves = leaves_of(shared, 15)
    pairs = [(old, new) for new in TESSERA_SIZES for old in range(1, new + 1)]
    for old, new in pairs:
        proof = consistency_proof(leaves[:new], old)
        assert verify_consistency(old, new, roots[old], roots[new], proof)
        assert not verify_consistency(old, new, roots[old - 1], roots[new], proof)
    assert len(pairs) == 120


@pytest.mark.parametrize("size", TESSERA_SIZES)
def test_checkpoints_of_another_log_can_not_be_changed(shared: Path, size: int) -> None:
    """Another size, origin, root or signature is refused."""
    name, public = parse_vkey(TESSERA_VKEY)
    note = (tessera(shared) / f"checkpoint.{size}").read_text(encoding="utf-8")
    origin, _, root, *_ = note.split("\n")
    for changed in (
        note.replace(f"\n{size}\n", f"\n{size + 1}\n"),
        note.replace(origin, "example.com/other", 1),
        note.replace(root, b64encode(ROOT).decode()),
        note.replace(root, b64encode(b64decode(root)[::-1]).decode()),
    ):
        with pytest.raises(BadNote):
            open_note(changed, name, public)
