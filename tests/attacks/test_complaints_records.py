"""Which ids did a question return, to whom, when and why: every answer is on record, and stays there."""

from __future__ import annotations

import pytest

from .ways import Document, Python, Way, everywhere

QUESTIONS = [
    "zebra", "okapi gnu", "don't \"AND\" (zebra)", "斑馬", "nothing of the kind", "zebra\nokapi", " ", "z" * 5000,
    "🦓 zebra", "-zebra",
]  # fmt: skip
ABOUT = ["The zebra sleeps", "An okapi and a gnu", "斑馬睡在馬廄裡", "The zebra eats", "A horse"]


def asked(way: Way) -> dict[str, tuple[str, list[str]]]:
    """Ask each question: its receipt, and the ids it was answered with."""
    answers = {question: way.ask("recall", question, limit=2) for question in QUESTIONS}
    return {
        question: (answer["receipt"], [hit["memory"]["id"] for hit in answer["hits"]])
        for question, answer in answers.items()
    }


def of_verb(way: Way, verb: str, **filters: str) -> list[Document]:
    """The receipts of a verb, newest first."""
    found: list[Document] = way.ask("receipts", limit=200, **filters)["receipts"]
    return [receipt for receipt in found if receipt["verb"] == verb]


def test_every_recall_tells_which_ids_it_returned(way: Way) -> None:
    """The receipt names question, ids in order, scores and log; it is found by the memory too, and for good."""
    ids = dict(zip(ABOUT, way.store_all(ABOUT), strict=True))
    answered = asked(way)
    for each in everywhere(way):
        found = {receipt["receipt"]: receipt for receipt in of_verb(each, "recall")}
        for question, (receipt, hits) in answered.items():
            assert found[receipt]["query"] == question, each.state
            assert found[receipt]["memories"] == hits, (question, each.state)
            assert found[receipt]["actor"] == way.settings["actor"], each.state
        for question, (receipt, hits) in [*answered.items()][:: 1 if isinstance(each, Python) else 4]:
            why = each.ask("why", receipt)
            assert (why["query"], [hit["memory"]["id"] for hit in why["hits"]]) == (question, hits), each.state
            assert all(hit["scores"]["fused"] is not None for hit in why["hits"]), each.state
            assert why["log_size"] == 1 + len(ABOUT), each.state
        zebra = ids["The zebra sleeps"]
        that = {receipt["receipt"] for receipt in of_verb(each, "recall", memory=zebra)}
        assert that == {receipt for receipt, hits in answered.values() if zebra in hits} | (
            that - {r for r, _ in answered.values()}
        )


def test_the_record_of_an_answer_outlives_what_it_handed_out(way: Way) -> None:
    """Forgotten, revised or superseded since: what was returned then is still told, as it was then."""
    memory = way.store("The zebra sleeps")
    value = way.store("The okapi is at home", key="okapi")
    receipts = [way.ask("recall", word)["receipt"] for word in ("zebra", "okapi")]
    way.ask("revise", memory, text="The gnu sleeps")
    way.ask("forget", memory)
    way.store("The okapi is away", key="okapi")
    for each in everywhere(way):
        told = [each.ask("why", receipt)["hits"][0]["memory"] for receipt in receipts]
        assert [m["id"] for m in told] == [memory, value], each.state
        assert [m["text"] for m in told] == ["The zebra sleeps", "The okapi is at home"], each.state


@pytest.mark.parametrize("verb", ["recall", "search", "get", "history", "blame", "context"])
def test_every_verb_that_hands_out_text_is_on_record(way: Way, verb: str) -> None:
    """With the ids it handed out, who asked and when; asked by another actor, that one is named."""
    memory = way.store("The zebra sleeps")
    way.close()
    way.settings["actor"] = "agent:reader"
    way.ask(verb, *{"recall": ["zebra"], "search": [], "context": ["zebra"]}.get(verb, [memory]))
    for each in everywhere(way):
        told = [r for r in of_verb(each, verb) if r["actor"] == "agent:reader"]
        assert [r["memories"] for r in told][-1] == [memory], each.state
        assert [e["kind"] for e in each.ask("log", memory=memory, log="access", limit=99)["events"]], each.state


def test_an_answer_that_is_not_on_record_is_not_given(way: Way) -> None:
    """Each recall has a receipt of its own, even of the same question; none is lost between two openings."""
    way.store("The zebra sleeps")
    receipts = []
    for _ in range(5):
        receipts += [way.ask("recall", "zebra")["receipt"] for _ in range(2)]
        way.close()
    assert len({*receipts}) == 10
    assert None not in receipts
    assert {r["receipt"] for r in of_verb(way, "recall")} == {*receipts}
