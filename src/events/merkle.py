"""The RFC 6962 Merkle tree over SHA-256: roots, and proofs that anyone can check."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """Hash an entry into its 32-byte leaf: SHA-256(0x00 || entry), RFC 6962 section 2.1."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Join two 32-byte hashes into their parent: SHA-256(0x01 || left || right), RFC 6962 section 2.1."""
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The right edge of a tree: enough to append, and to know the root, without the leaves.

    `hashes` are the roots of the perfect subtrees, largest first, one for each bit set in
    `size`. A frontier is never changed: `append` returns the next one. `Frontier()` is the
    empty tree. Raises ValueError if `hashes` can't belong to a tree of `size` leaves.
    """

    __slots__ = ("hashes", "size")

    size: int
    hashes: tuple[bytes, ...]

    def __init__(self, size: int = 0, hashes: Sequence[bytes] = ()) -> None:
        """Take up a tree where it was left, from its stored size and edge."""
        if size < 0:
            raise ValueError(f"a tree can't have {size} leaves: give the size it was stored with")
        if len(hashes) != size.bit_count():
            raise ValueError(
                f"the edge of a tree of {size} leaves has {size.bit_count()} hashes, not {len(hashes)}: "
                "recompute it from the leaves"
            )
        _require_hashes(hashes)
        self.size = size
        self.hashes = tuple(hashes)

    def append(self, leaf: bytes) -> Frontier:
        """Return the frontier after one more leaf hash of 32 bytes.

        Costs one hash for each trailing bit set in `size`, one on average. Raises ValueError
        if `leaf` is not 32 bytes.
        """
        if len(leaf) != HASH_BYTES:
            _require_hashes([leaf])
        size, hashes, end = self.size, self.hashes, len(self.hashes)
        bits = size
        while bits & 1:
            end -= 1
            leaf = sha256(b"\x01" + hashes[end] + leaf).digest()
            bits >>= 1
        following: Frontier = _new(Frontier)
        following.size = size + 1
        following.hashes = (*hashes[:end], leaf)
        return following

    def root(self) -> bytes:
        """Return the 32-byte root: MTH of RFC 6962 section 2.1. The empty tree has EMPTY_ROOT."""
        hashes = self.hashes
        if not hashes:
            return EMPTY_ROOT
        root = hashes[-1]
        for left in hashes[-2::-1]:
            root = sha256(b"\x01" + left + root).digest()
        return root


_new = object.__new__


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over leaf hashes of 32 bytes: MTH of RFC 6962 section 2.1.

    Raises ValueError if a leaf is not 32 bytes.
    """
    _require_hashes(leaves)
    level = leaves
    while len(level) > 1:
        level = _parents(level)
    return level[0] if level else EMPTY_ROOT


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes, lowest first, that lead from leaf `index` to the root.

    PATH of RFC 9162 section 2.1.3.1. Raises ValueError if there is no such leaf, or a leaf is not 32 bytes.
    """
    if not 0 <= index < len(leaves):
        raise ValueError(f"a tree of {len(leaves)} leaves has no leaf {index}: ask for one below its size")
    _require_hashes(leaves)
    proof, level = [], leaves
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            proof.append(level[sibling])
        level, index = _parents(level), index >> 1
    return proof


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """Return the hashes which prove that the tree of the first `old_size` leaves is a prefix of this one.

    PROOF of RFC 9162 section 2.1.4.1; empty for a tree and itself. Raises ValueError if
    `old_size` is 0 (nothing is proved by it) or more than there are leaves.
    """
    if not 0 < old_size <= len(leaves):
        raise ValueError(f"no proof leads from size {old_size} to {len(leaves)}: ask from 1 up to the size")
    proof: list[bytes] = []
    whole = True
    while old_size != len(leaves):
        split = 1 << (len(leaves) - 1).bit_length() - 1
        left, right = leaves[:split], leaves[split:]
        if old_size <= split:
            proof.append(root_of(right))
            leaves = left
        else:
            proof.append(root_of(left))
            leaves, old_size, whole = right, old_size - split, False
    if not whole:
        proof.append(root_of(leaves))
    return proof[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Tell whether `proof` shows that leaf hash `leaf` is number `index` of the tree (`size`, `root`).

    RFC 9162 section 2.1.3.2. Any hash that is not 32 bytes makes it false.
    """
    if not 0 <= index < size or not _are_hashes((leaf, root, *proof)):
        return False
    place, last, computed = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            computed = node_hash(sibling, computed)
            place, last = _past_missing_siblings(place, last)
        else:
            computed = node_hash(computed, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and computed == root


def verify_consistency(old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Tell whether `proof` shows that the tree (`new_size`, `new_root`) only adds to the old one.

    RFC 9162 section 2.1.4.2, and for equal sizes: an empty proof and equal roots. An old size
    of 0 is refused, since every tree extends the empty one; so is any hash that is not 32 bytes.
    """
    if not 0 < old_size <= new_size or not _are_hashes((old_root, new_root, *proof)):
        return False
    if old_size == new_size:
        return not proof and old_root == new_root
    path = [old_root, *proof] if old_size.bit_count() == 1 else proof
    return bool(proof) and _roots_along(path, old_size, new_size) == (old_root, new_root)


def _roots_along(path: Sequence[bytes], old_size: int, new_size: int) -> tuple[bytes, bytes] | None:
    """Return the two roots a consistency path leads to, or None if it has a wrong length."""
    place, last = old_size - 1, new_size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = path[0]
    for node in path[1:]:
        if last == 0:
            return None
        if place & 1 or place == last:
            old, new = node_hash(node, old), node_hash(node, new)
            place, last = _past_missing_siblings(place, last)
        else:
            new = node_hash(new, node)
        place, last = place >> 1, last >> 1
    return (old, new) if last == 0 else None


def _past_missing_siblings(place: int, last: int) -> tuple[int, int]:
    """Climb the levels at which the last node of an incomplete tree has no sibling."""
    while not place & 1 and place:
        place, last = place >> 1, last >> 1
    return place, last


def _parents(level: Sequence[bytes]) -> list[bytes]:
    """Hash neighbours in pairs; a last node without a neighbour moves up as it is."""
    parents = [node_hash(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
    if len(level) & 1:
        parents.append(level[-1])
    return parents


def _are_hashes(hashes: Sequence[bytes]) -> bool:
    return all(len(each) == HASH_BYTES for each in hashes)


def _require_hashes(hashes: Sequence[bytes]) -> None:
    if not _are_hashes(hashes):
        raise ValueError(f"a hash in a tree is {HASH_BYTES} bytes: pass leaf_hash(entry), not the entry")
