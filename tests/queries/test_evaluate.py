"""What another answer to a recall changes, and how well the memories are found that were used."""

import pytest

from tallystick.queries.evaluate import Change, Compared, Evaluation


def asked(before: str, now: str, used: str = "", change: Change = "changed") -> Compared:
    """A recall whose hits are letters."""
    return Compared("r", "q", 1, change, before=tuple(before), now=tuple(now), used=tuple(used))


@pytest.mark.parametrize(
    ("before", "now", "gained", "lost", "overlap"),
    [
        ("abc", "abc", "", "", 1.0),
        ("abc", "cba", "", "", 1.0),
        ("abc", "abd", "d", "c", 2 / 3),
        ("ab", "abcd", "cd", "", 0.5),
        ("abcd", "a", "", "bcd", 0.25),
        ("", "a", "a", "", 0.0),
        ("a", "", "", "a", 0.0),
        ("", "", "", "", 1.0),
    ],
)
def test_what_one_answer_has_and_the_other_has_not(
    before: str, now: str, gained: str, lost: str, overlap: float
) -> None:
    """The best first; the overlap is a share of the longer one."""
    found = asked(before, now)
    assert (found.gained, found.lost, found.overlap) == (tuple(gained), tuple(lost), overlap)


def test_how_well_used_memories_are_found() -> None:
    """Each is a label; the rank is that of the first, and what is not found counts 0."""
    recalls = (asked("abc", "cab", "a"), asked("abc", "bxy", "bc"), asked("ab", "xy", "ab"), asked("ab", "zz"))
    found = Evaluation("m", (), recalls)
    assert [each.first_used for each in recalls] == [(1, 2), (2, 1), (1, 0), (0, 0)]
    assert found.used_before == pytest.approx((1.0, (1 + 1 / 2 + 1) / 3))
    assert found.used_now == pytest.approx(((1 + 1 / 2 + 0) / 3, (1 / 2 + 1 + 0) / 3))
    assert found.overlap == pytest.approx((1 + 1 / 3 + 0 + 0) / 4)


def test_what_was_not_asked_counts_in_nothing_else() -> None:
    """Nor is a mean told of nothing."""
    found = Evaluation("m", (), (asked("a", "", "a", "not asked"),))
    assert found.counts == {"same": 0, "reordered": 0, "changed": 0, "not asked": 1}
    assert (found.overlap, found.used_before, found.used_now, found.labelled) == (None, None, None, [])
