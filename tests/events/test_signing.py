"""Ed25519 as every other verifier does it, and without the keys that anyone can sign for."""

from __future__ import annotations

import json
from hashlib import sha256, sha512
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.events import signing
from tallystick.events.signing import SeedSigner, Signer, admit_public_key, key_id, verify

SEED = bytes(range(32))
MESSAGE = b"a message"

# Curve edwards25519 in plain integers, RFC 8032 section 5.1.
P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493
BASE = (
    15112221349535400772501151409588531511454012693041857206046113283949847762202,
    46316835694926478169428394003475163141307993866256225615783033603165251855960,
)
IDENTITY = (0, 1)
Point = tuple[int, int]


def add(one: Point, other: Point) -> Point:
    """The sum of two points, by the complete addition law of RFC 8032 section 5.1.4 in affine form."""
    (x1, y1), (x2, y2) = one, other
    mixed = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + mixed, -1, P) % P
    y = (y1 * y2 + x1 * x2) * pow(1 - mixed, -1, P) % P
    return x, y


def times(scalar: int, point: Point) -> Point:
    """The multiple of a point."""
    result = IDENTITY
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def points_at(y: int) -> list[Point]:
    """The points with this y: x squared is (y^2 - 1) / (d y^2 + 1), RFC 8032 section 5.1.3."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    candidates = {root, root * pow(2, (P - 1) // 4, P) % P}
    return [(x, y) for each in candidates if each * each % P == square for x in {each, -each % P}]


def small_order_points() -> list[Point]:
    """The eight points whose order divides 8: multiples of a point, freed of its prime-order part."""
    for y in range(2, 100):
        for point in points_at(y):
            torsion = times(ORDER, point)
            if times(4, torsion) != IDENTITY:
                return [times(multiple, torsion) for multiple in range(8)]
    raise AssertionError("no point of order 8 found")


def encodings(point: Point) -> set[bytes]:
    """Every 32 bytes that a lenient decoder reads as the point: y also unreduced, and any sign for x = 0."""
    x, y = point
    signs = {x & 1} if x else {0, 1}
    unreduced = [each for each in (y, y + P) if each < 2**255]
    return {(each | sign << 255).to_bytes(32, "little") for each in unreduced for sign in signs}


SMALL_ORDER = sorted(set().union(*(encodings(point) for point in small_order_points())))


def test_there_are_fourteen_small_order_keys() -> None:
    """The list under test is derived here from the curve alone."""
    assert len(SMALL_ORDER) == 14


@pytest.mark.parametrize("public", SMALL_ORDER, ids=bytes.hex)
def test_small_order_keys_are_refused(public: bytes) -> None:
    """Such a key is not admitted, and signatures that satisfy its equation are not by anybody."""
    with pytest.raises(ValueError, match="small order"):
        admit_public_key(public)
    for scalar in range(1, 9):
        forged = min(encodings(times(scalar, BASE))) + scalar.to_bytes(32, "little")
        assert not verify(public, MESSAGE, forged)


def test_small_order_keys_are_refused_whatever_the_library_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries differ on these keys; we do not leave it to the one that is installed."""
    monkeypatch.setattr(signing, "is_signed", lambda message, signature, public: True)
    assert verify(SeedSigner(SEED).public, MESSAGE, bytes(64))
    assert not any(verify(public, MESSAGE, bytes(64)) for public in SMALL_ORDER)


@pytest.mark.parametrize(
    ("seed", "public", "message", "signature"),
    [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
            "387b2eaeb4302aeeb00d291612bb0c00",
        ),
    ],
)
def test_rfc_8032_examples(seed: str, public: str, message: str, signature: str) -> None:
    """The first two test vectors of RFC 8032 section 7.1."""
    signer = SeedSigner(bytes.fromhex(seed))
    assert signer.public.hex() == public
    assert signer.sign(bytes.fromhex(message)).hex() == signature
    assert verify(signer.public, bytes.fromhex(message), bytes.fromhex(signature))


def test_a_signature_derived_by_hand_is_the_same() -> None:
    """RFC 8032 sections 5.1.5 and 5.1.6 in plain integers give our key and our signature."""
    digest = sha512(SEED).digest()
    secret = (int.from_bytes(digest[:32], "little") & (1 << 254) - 8) | 1 << 254
    public = min(encodings(times(secret, BASE)))
    nonce = int.from_bytes(sha512(digest[32:] + MESSAGE).digest(), "little") % ORDER
    commitment = min(encodings(times(nonce, BASE)))
    challenge = int.from_bytes(sha512(commitment + public + MESSAGE).digest(), "little")
    signature = commitment + ((nonce + challenge * secret) % ORDER).to_bytes(32, "little")
    assert (SeedSigner(SEED).public, SeedSigner(SEED).sign(MESSAGE)) == (public, signature)


def test_a_second_signature_made_from_the_first_is_refused() -> None:
    """Adding the group order to S must not give another valid signature (RFC 8032 section 5.1.7)."""
    signer = SeedSigner(SEED)
    signature = signer.sign(MESSAGE)
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    assert not verify(signer.public, MESSAGE, signature[:32] + scalar.to_bytes(32, "little"))


@given(st.binary(max_size=200), st.integers(0), st.sampled_from(["public", "message", "signature"]))
def test_any_changed_bit_is_refused(message: bytes, place: int, part: str) -> None:
    """A signature holds for its key and its message only."""
    signer = SeedSigner(SEED)
    parts = {"public": signer.public, "message": message + b".", "signature": signer.sign(message + b".")}
    assert verify(**parts)
    changed = bytearray(parts[part])
    changed[place // 8 % len(changed)] ^= 1 << place % 8
    assert not verify(**{**parts, part: bytes(changed)})


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_keys_and_seeds_of_another_length_are_refused(length: int) -> None:
    """Neither admitted, nor used up to the right length, nor an unexpected error."""
    signer = SeedSigner(SEED)
    assert not verify((signer.public * 2)[:length], MESSAGE, signer.sign(MESSAGE))
    with pytest.raises(ValueError, match="32 bytes"):
        admit_public_key(bytes(range(length)))
    with pytest.raises(ValueError, match="32 bytes"):
        SeedSigner(bytes(range(length)))


@pytest.mark.parametrize("length", [0, 1, 63, 65, 128])
def test_signatures_of_another_length_are_refused(length: int) -> None:
    """Bytes can't move between the signature and the message."""
    signer = SeedSigner(SEED)
    signed = signer.sign(MESSAGE * 10) + MESSAGE * 10
    assert verify(signer.public, signed[64:], signed[:64])
    assert not verify(signer.public, signed[length:], signed[:length])


def test_a_signer_keeps_its_seed_and_shows_only_its_public_key() -> None:
    """The seed can be stored, and no log line or traceback tells it."""
    signer = SeedSigner(SEED)
    assert signer.seed == SEED
    assert signer.public.hex() in repr(signer)
    assert SEED.hex() not in repr(signer)
    assert repr(SEED) not in repr(signer)


def test_generated_signers_differ_and_sign() -> None:
    """Each new key is its own."""
    one: Signer = SeedSigner.generate()
    other: Signer = SeedSigner.generate()
    assert one.public != other.public
    assert verify(admit_public_key(one.public), MESSAGE, one.sign(MESSAGE))
    assert not verify(other.public, MESSAGE, one.sign(MESSAGE))


def test_a_key_id_is_the_start_of_a_hash_in_its_own_context() -> None:
    """Eight bytes that another use of SHA-256 over the key does not give."""
    public = SeedSigner(SEED).public
    assert key_id(public) == sha256(b"tallystick/key/v1\x00" + public).digest()[:8]


def test_wycheproof(shared: Path) -> None:
    """All 151 Ed25519 cases of Wycheproof agree."""
    vectors = json.loads((shared / "vectors" / "wycheproof_ed25519.json").read_text(encoding="utf-8"))
    cases = [(group["publicKey"]["pk"], case) for group in vectors["testGroups"] for case in group["tests"]]
    disagreeing = [
        case["tcId"]
        for public, case in cases
        if verify(*map(bytes.fromhex, (public, case["msg"], case["sig"]))) != (case["result"] == "valid")
    ]
    assert (len(cases), disagreeing) == (151, [])
