"""What makes an embedding space, and what its id stands for."""

from dataclasses import replace

import pytest

from tallystick.projections.embedding import Space

SPACE = Space("model", "00" * 32, "11" * 32, 384, "mean", ("", "query: "), "int8")
OTHER = {
    "model": "other",
    "model_sha256": "22" * 32,
    "tokenizer_sha256": "22" * 32,
    "dimensions": 96,
    "pooling": "first",
    "prompts": ("query: ", ""),
    "quantisation": "float32",
    "projection": "33" * 32,
}


def test_the_id_of_a_space_never_changes() -> None:
    """The id of given fields is fixed for ever: vectors on disk are filed under it."""
    assert SPACE.id == "02d7135288683dda"


@pytest.mark.parametrize("field", OTHER)
def test_every_field_makes_another_space(field: str) -> None:
    """Whatever makes vectors incomparable changes the id."""
    changed = {field: OTHER[field]}
    assert replace(SPACE, **changed).id != SPACE.id  # type: ignore[arg-type]
