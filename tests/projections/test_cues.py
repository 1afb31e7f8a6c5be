"""What a text shows at a glance: how much it says, whether it asks, whether it tells a time or a number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.projections.cues import ASKS, SHORT, TELLS_A_NUMBER, TELLS_A_TIME, cues_of, words_of

CUES = {
    "Shall we go?": ASKS,
    "Shall we go? ": ASKS,
    "去吗？": ASKS,
    "هل نذهب؟": ASKS,
    "Shall we go? [shows a photo of a train]": ASKS,
    "Shall we go? (laughing)": ASKS,
    "We went. Shall we go again? No": 0,
    "We went (did we?)": 0,
    "We went yesterday": TELLS_A_TIME,
    "We went on a Friday in June": TELLS_A_TIME,
    "We moved in 1998": TELLS_A_TIME | TELLS_A_NUMBER,
    "Room 1234": TELLS_A_NUMBER,
    "We moved in ٢٠٢٣": TELLS_A_TIME | TELLS_A_NUMBER,
    "We moved in ②⓪②③": TELLS_A_TIME | TELLS_A_NUMBER,
    "Room ፩፪፫፬": TELLS_A_NUMBER,  # digits that are in no place of a number
    "She has three dogs": TELLS_A_NUMBER,
    "A dozen eggs": TELLS_A_NUMBER,
    "Was it in May?": ASKS | TELLS_A_TIME,
    "Use WAL mode": 0,
    "?": ASKS,
    "]": 0,
    "": 0,
}


@pytest.fixture(scope="module")
def memory() -> Memory:
    """A store to make records with."""
    return Memory.temporary()


@pytest.mark.parametrize("text", [text for text in CUES if text])
def test_the_cues_of_a_text(memory: Memory, text: str) -> None:
    """A question mark at its end, remarks in brackets aside; words for times; digits and words for numbers."""
    assert cues_of(memory.get(memory.store(text).id))[1] == CUES[text]


def test_different_words_are_counted(memory: Memory) -> None:
    """Each word once, however it is written, the author's name too; function words not at all."""
    assert cues_of(memory.get(memory.store("The dogs saw the dog and a cat").id))[0] == 3
    assert cues_of(memory.get(memory.store("The dogs hear the dog and a cat", author="Ana").id))[0] == 4


@settings(max_examples=50)
@given(text=st.text(st.characters(categories=["Nd", "Nl", "No"]), min_size=4, max_size=4))
def test_any_digits_are_no_error(memory: Memory, text: str) -> None:
    """What cannot be folded could neither be read nor followed by anything else."""
    assert cues_of(memory.get(memory.store(f"Room {text}").id))[0] >= 1


def test_only_short_documents_are_remembered() -> None:
    """The tokens of a document that several views ask for are made once; those of long ones are not held on to."""
    assert words_of("Ana: hello there") is words_of("Ana: hello there")
    long = "Lisbon " * SHORT
    assert words_of(long) == words_of(long)
    assert words_of(long) is not words_of(long)
