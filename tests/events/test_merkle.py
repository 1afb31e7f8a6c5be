"""The tree of RFC 6962: its roots, its proofs, and what a proof must not show."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.events.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)

LARGEST = 70
LEAVES = [leaf_hash(bytes([number])) for number in range(LARGEST)]
OTHER = leaf_hash(b"in no tree")

# The entries and roots that Certificate Transparency implementations test each other with.
REFERENCE_ENTRIES = [
    bytes.fromhex(entry)
    for entry in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
REFERENCE_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def tree_hash(entries: list[bytes]) -> bytes:
    """MTH as RFC 6962 section 2.1 writes it: split at the largest power of two below the size."""
    if not entries:
        return sha256(b"").digest()
    if len(entries) == 1:
        return sha256(b"\0" + entries[0]).digest()
    split = 1
    while split * 2 < len(entries):
        split *= 2
    return sha256(b"\1" + tree_hash(entries[:split]) + tree_hash(entries[split:])).digest()


def frontier_of(leaves: list[bytes]) -> Frontier:
    """The frontier after appending the leaves one at a time."""
    frontier = Frontier()
    for leaf in leaves:
        frontier = frontier.append(leaf)
    return frontier


def changes(proof: list[bytes]) -> Iterator[list[bytes]]:
    """The proof with each hash altered, cut short, removed or swapped with the next, or one hash too many."""
    for place, node in enumerate(proof):
        yield [*proof[:place], bytes([node[0] ^ 1]) + node[1:], *proof[place + 1 :]]
        yield [*proof[:place], node[:31], *proof[place + 1 :]]
        yield [*proof[:place], *proof[place + 1 :]]
    for place in range(len(proof) - 1):
        yield [*proof[:place], proof[place + 1], proof[place], *proof[place + 2 :]]
    yield [*proof, OTHER]
    yield [OTHER, *proof]


@pytest.mark.parametrize("size", range(9))
def test_reference_roots(size: int) -> None:
    """Roots are those of Certificate Transparency, and those of the RFC's own definition."""
    entries = REFERENCE_ENTRIES[:size]
    leaves = [leaf_hash(entry) for entry in entries]
    expected = tree_hash(entries)
    assert expected.hex() == (REFERENCE_ROOTS[size - 1] if size else sha256(b"").hexdigest())
    assert root_of(leaves) == frontier_of(leaves).root() == expected


def test_the_empty_tree_has_the_hash_of_nothing() -> None:
    """The root before the first entry is SHA-256 of no bytes."""
    assert Frontier().root() == root_of([]) == EMPTY_ROOT == sha256(b"").digest()


def test_a_leaf_never_hashes_like_a_node() -> None:
    """The prefixes keep two nodes from being passed off as an entry."""
    assert leaf_hash(LEAVES[0] + LEAVES[1]) != node_hash(LEAVES[0], LEAVES[1])


@given(st.lists(st.binary(max_size=40), max_size=LARGEST))
def test_appending_one_at_a_time_gives_the_root_of_all(entries: list[bytes]) -> None:
    """A log grown entry by entry has the root of the same entries taken together."""
    leaves = [leaf_hash(entry) for entry in entries]
    frontier = frontier_of(leaves)
    assert frontier.size == len(entries)
    assert frontier.root() == root_of(leaves) == tree_hash(entries)


@given(st.integers(0, LARGEST), st.integers(0, LARGEST))
def test_a_frontier_goes_on_from_where_it_was_stored(stored: int, more: int) -> None:
    """Size and hashes are all that must be kept to append later."""
    kept = frontier_of(LEAVES[:stored])
    resumed = Frontier(kept.size, kept.hashes)
    for leaf in LEAVES[:more]:
        resumed = resumed.append(leaf)
    assert resumed.root() == root_of(LEAVES[:stored] + LEAVES[:more])


def test_append_leaves_the_frontier_as_it_was() -> None:
    """A transaction that is rolled back keeps the frontier it began with."""
    frontier = frontier_of(LEAVES[:7])
    before = (frontier.size, frontier.hashes, frontier.root())
    frontier.append(LEAVES[7])
    assert (frontier.size, frontier.hashes, frontier.root()) == before


@pytest.mark.parametrize(
    ("size", "hashes"),
    [(-1, [OTHER]), (1, []), (0, [OTHER]), (3, [OTHER]), (4, [OTHER, OTHER]), (1, [OTHER[:31]])],
)
def test_a_frontier_that_fits_no_tree_is_refused(size: int, hashes: list[bytes]) -> None:
    """A damaged stored edge is noticed when it is read."""
    with pytest.raises(ValueError, match=r": \w+"):
        Frontier(size, hashes)


def test_only_leaf_hashes_enter_a_tree() -> None:
    """An entry passed where its hash belongs is refused."""
    with pytest.raises(ValueError, match="leaf_hash"):
        Frontier().append(b"an entry")
    with pytest.raises(ValueError, match="leaf_hash"):
        root_of([OTHER, b"an entry"])
    with pytest.raises(ValueError, match="leaf_hash"):
        inclusion_proof([b"an entry"], 0)


def test_every_inclusion_proof_holds_and_no_changed_one() -> None:
    """Every leaf of every tree up to 70 leaves is proved, and nothing else is."""
    for size in range(1, LARGEST + 1):
        leaves, root = LEAVES[:size], root_of(LEAVES[:size])
        for index, leaf in enumerate(leaves):
            proof = inclusion_proof(leaves, index)
            assert verify_inclusion(leaf, index, size, proof, root)
            assert not verify_inclusion(OTHER, index, size, proof, root)
            assert not verify_inclusion(leaf, index, size, proof, OTHER)
            assert not verify_inclusion(leaf, (index + 1) % size, size, proof, root) or size == 1
            assert not any(verify_inclusion(leaf, index, size, each, root) for each in changes(proof))


def test_every_consistency_proof_holds_and_no_changed_one() -> None:
    """Every pair of trees up to 70 leaves is proved consistent, and nothing else is."""
    roots = [root_of(LEAVES[:size]) for size in range(LARGEST + 1)]
    for new in range(1, LARGEST + 1):
        for old in range(1, new + 1):
            proof = consistency_proof(LEAVES[:new], old)
            assert verify_consistency(old, new, roots[old], roots[new], proof)
            assert not verify_consistency(old, new, OTHER, roots[new], proof)
            assert not verify_consistency(old, new, roots[old], OTHER, proof)
            assert not any(verify_consistency(old, new, roots[old], roots[new], each) for each in changes(proof))


@pytest.mark.parametrize("index", [-1, 3, 4])
def test_a_leaf_outside_the_tree_has_no_proof(index: int) -> None:
    """Neither asked for nor accepted."""
    with pytest.raises(ValueError, match="no leaf"):
        inclusion_proof(LEAVES[:3], index)
    proof = inclusion_proof(LEAVES[:3], 2)
    assert not verify_inclusion(LEAVES[2], index, 3, proof, root_of(LEAVES[:3]))


@pytest.mark.parametrize("old_size", [-1, 0, 4])
def test_a_size_outside_the_tree_has_no_proof(old_size: int) -> None:
    """An old size of 0 proves nothing, and a larger one can't be a prefix."""
    with pytest.raises(ValueError, match="no proof leads"):
        consistency_proof(LEAVES[:3], old_size)
    assert not verify_consistency(old_size, 3, EMPTY_ROOT, root_of(LEAVES[:3]), [])


def test_a_path_longer_than_the_tree_is_high_is_refused() -> None:
    """A root one level further up belongs to another size, even where the hashes fit."""
    above = node_hash(LEAVES[0], LEAVES[1])
    assert not verify_inclusion(LEAVES[1], 0, 1, [LEAVES[0]], above)
    old_root, new_root = (node_hash(OTHER, root_of(LEAVES[:size])) for size in (3, 4))
    assert not verify_consistency(3, 4, old_root, new_root, [*consistency_proof(LEAVES[:4], 3), OTHER])


def test_hashes_of_another_length_are_refused() -> None:
    """Equal roots of 12 bytes are no roots of this tree."""
    assert not verify_consistency(1, 1, b"short hash12", b"short hash12", [])
    assert not verify_inclusion(b"short hash12", 0, 1, [], b"short hash12")


def test_shared_vectors(shared: Path) -> None:
    """All 196 proofs of transparency-dev/merkle agree, but the valid one whose roots are not 32 bytes."""
    cases = json.loads((shared / "vectors" / "rfc6962_proofs.json").read_text(encoding="utf-8"))
    disagreeing = [each["file"] for each in cases if _accepted(each["case"]) == each["case"]["wantErr"]]
    assert len(cases) == 196
    assert disagreeing == ["testdata/consistency/additional/sizes-are-equal-one-and-proof-is-empty.json"]


def _accepted(case: dict[str, Any]) -> bool:
    proof = [b64decode(node or "") for node in case["proof"] or []]
    if "leafIdx" in case:
        leaf, root = (b64decode(case[name] or "") for name in ("leafHash", "root"))
        return verify_inclusion(leaf, case["leafIdx"], case["treeSize"], proof, root)
    old_root, new_root = (b64decode(case[name] or "") for name in ("root1", "root2"))
    return verify_consistency(case["size1"], case["size2"], old_root, new_root, proof)
