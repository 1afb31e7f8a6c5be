"""A time is an instant, whoever writes it where; a text is kept byte for byte, or refused in words."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .ways import NAMESPACE, CommandLine, Place, Process, Python, Refusal, Way, everywhere

# ---- local, naive and mixed times

INSTANT = "2026-05-08T13:56:00+00:00"
WRITTEN = [
    "2026-05-08T13:56:00Z", "2026-05-08T13:56Z", "2026-05-08 13:56:00+00:00", "2026-05-08T15:56:00+02:00",
    "2026-05-08T06:56:00-07:00", "2026-05-08T19:26:00+05:30", "2026-05-08T19:41:00+05:45", "2026-05-09T03:56:00+14:00",
    "2026-05-08T01:56:00-12:00", "2026-W19-5T13:56:00Z", "2026-05-08T13:56:00.000000Z", "20260508T135600Z",
]  # fmt: skip
"""One instant."""
NAIVE = ["2026-05-08T13:56:00", "2026-05-08", "2026-05-08 13:56", "20260508"]
NO_TIME = ["yesterday", "", "now", "13:56", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "1778248560", "Z"]


def told(when: str) -> datetime:
    """A time as a document tells it."""
    found = datetime.fromisoformat(when)
    assert found.utcoffset() == timedelta(0)
    return found


def test_one_instant_is_one_however_it_is_written(way: Way) -> None:
    """Every offset is the same moment: as it is kept, as it is filtered by, and in which order it stands."""
    rows = [{"text": f"zebra {n}", "occurred_at": written} for n, written in enumerate(WRITTEN)]
    way.store_all(rows)
    way.store_all([{"text": "zebra before", "occurred_at": "2026-05-08T15:55:59.999999+02:00"}])
    way.store_all([{"text": "zebra after", "occurred_at": "2026-05-08T06:56:00.000001-07:00"}])
    same = {f"zebra {n}" for n in range(len(WRITTEN))}
    for each in everywhere(way):
        memories = each.ask("search", sort="occurred_at")["memories"]
        assert [m["text"] for m in memories][:: len(memories) - 1] == ["zebra before", "zebra after"], each.state
        assert {told(m["occurred_at"]) for m in memories[1:-1]} == {datetime.fromisoformat(INSTANT)}, each.state
        for bound in WRITTEN if isinstance(each, Python) else WRITTEN[3:6]:
            assert set(each.listed(since=bound)) == same | {"zebra after"}, (bound, each.state)
            assert set(each.texts("zebra", until=bound, limit=99)) == {"zebra before"}, (bound, each.state)
            assert set(each.listed(where={"occurred_at": bound})) == same, (bound, each.state)


@pytest.mark.parametrize("field", ["occurred_at", "valid_from", "expires_at"])
def test_a_time_without_a_zone_is_refused_everywhere(way: Way, field: str) -> None:
    """It is not taken for local, nor for UTC: nothing is stored, and the message says what to add."""
    for wrong in (*NAIVE, *NO_TIME):
        refused = way.refusal("store", "zebra", **{field: wrong or " "})
        assert refused.kind == "Refused"
        assert field in refused.message and re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", refused.message)
    (row,) = way.ask_rows([{"text": "zebra", field: NAIVE[0]}])
    assert (row["outcome"], "time zone" in row["reason"]) == ("refused", True)
    memory = way.store("zebra")
    assert way.refusal("revise", memory, **{field: NAIVE[0]}).kind == "Refused"
    assert way.get(memory)["revision"] == 0


def test_a_bound_without_a_zone_is_refused_and_is_no_crash(way: Way) -> None:
    """In recall, search, log and receipts."""
    way.store("zebra", occurred_at=INSTANT)
    for wrong in (NAIVE[0], NO_TIME[0]):
        for verb, words in (("recall", ["zebra"]), ("search", []), ("log", []), ("receipts", [])):
            assert way.refusal(verb, *words, since=wrong).kind == "Refused", verb
            assert way.refusal(verb, *words, until=wrong).kind == "Refused", verb


class Nowhere(tzinfo):
    """A zone that does not know its offset, which Python takes for local time."""

    def utcoffset(self, _when: datetime | None) -> None:
        """Not known."""

    def dst(self, _when: datetime | None) -> None:
        """Not known."""

    def tzname(self, _when: datetime | None) -> str:
        """A name all the same."""
        return "Nowhere"


def test_a_zone_that_does_not_know_its_offset_is_none(place: Place) -> None:
    """A datetime whose zone tells nothing is as naive as one without."""
    with Python(place) as way:
        for when in (datetime(2026, 5, 8, tzinfo=Nowhere()), datetime(2026, 5, 8), datetime.max, datetime.min):  # noqa: DTZ001
            assert way.refusal("store", "zebra", occurred_at=when).kind == "Refused"
            assert way.refusal("recall", "zebra", since=when).kind == "Refused"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    """One store for many examples."""
    folder: Path = tmp_path_factory.mktemp("texts")
    with Python(Place(folder / "store", folder / "keys")) as way:
        yield way


COUNTED = iter(range(10**9))
OFFSETS = st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59)).map(timezone)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS), OFFSETS, st.booleans())  # noqa: DTZ001
def test_any_instant_comes_back_as_itself(python: Python, when: datetime, zone: timezone, written: bool) -> None:
    """To the microsecond, whatever its zone, as a datetime or as text, and however it is asked for."""
    subject = f"s{next(COUNTED)}"
    memory = python.store("zebra", subject=subject, occurred_at=when.isoformat() if written else when)
    assert told(python.get(memory)["occurred_at"]) == when
    asked: Any = when.astimezone(zone)
    for bound in (asked, asked.isoformat()):
        assert python.ids("zebra", subject=subject, since=bound) == [memory]
        assert python.ids("zebra", subject=subject, until=bound) == []
    assert python.ids("zebra", subject=subject, until=asked + timedelta(microseconds=1)) == [memory]


def test_the_zone_of_the_machine_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored in one zone of the world reads the same in every other; `recorded_at` is UTC."""
    ways = {}
    for zone in ("PST8PDT", "LINT-14"):
        monkeypatch.setenv("TZ", zone)
        way = Process(place)
        way.store(f"zebra {zone}", occurred_at="2026-05-08T13:56:00+02:00")
        ways[zone] = {m["text"]: (m["occurred_at"], m["recorded_at"]) for m in way.ask("search")["memories"]}
        recorded = told(ways[zone][f"zebra {zone}"][1])
        assert abs(datetime.now(UTC) - recorded) < timedelta(seconds=60)
    last = ways["LINT-14"]
    for found in ways.values():
        assert found.items() <= last.items()
    monkeypatch.setenv("TZ", "PST8PDT")
    time.tzset()
    try:
        with Python(place) as reader:
            assert {m["text"]: (m["occurred_at"], m["recorded_at"]) for m in reader.ask("search")["memories"]} == last
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_expiry_is_an_instant(way: Way) -> None:
    """In a zone ahead of UTC an hour from now is not past, and behind it an hour ago is."""
    now = datetime.now(UTC)
    for offset in (14, 9, 0, -7, -12):
        zone = timezone(timedelta(hours=offset))
        for hours in (-1, 1):
            when = (now + timedelta(hours=hours)).astimezone(zone).isoformat()
            way.store(f"zebra {offset} {hours}", expires_at=when)
    for each in everywhere(way):
        assert {text.split()[-1] for text in each.texts("zebra", limit=99)} == {"1"}, each.state
        assert len(each.listed(status=["expired"])) == 5, each.state


# ---- bytes that crash, disable or change

KEPT = {
    "NUL": "zebra\0okapi\0",
    "controls": "zebra" + "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "line ends": "zebra\r\nokapi\rgnu\n",
    "white space": "\t zebra \u3000\u00a0\n",
    "emoji": "zebra 👩‍👩‍👧‍👦 🏳️‍🌈 🇺🇳 👍🏿",
    "right to left": "zebra \u202eabc\u202c שלום \u200fمرحبا\u2067x\u2069",
    "combining": "zebra e\u0301\u0327 Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢",
    "decomposed": "zebra Ame\u0301lie \u1112\u1161\u11ab",
    "byte order": "\ufeffzebra\ufeff\ufffe\uffff",
    "beyond": "zebra \U0001f9d3\U0010ffff\U000e0001",
    "replacement": "zebra \ufffd",
    "escapes": 'zebra \\u0000 \\x00 \\n \\" \\ud800 %00 &#0;',
    "JSON": '{"zebra": null}',
    "SQL": "zebra'; DROP TABLE entry; --",
    "ANSI": "zebra \x1b[31mred\x1b[0m \x1b]0;title\x07",
    "one": "z",
    "two units": "zebra 𝕏𝕐",
    "separators": "zebra\u2028okapi\u2029gnu\x85x\x1c\x1d\x1e",
}


def test_any_text_is_kept_byte_for_byte(way: Way, tmp_path: Path) -> None:
    """By get, recall, search, history and export, after a restart and a rebuild."""
    ids = {way.store(text, thread="t", place=n): text for n, text in enumerate(KEPT.values())}
    for each in everywhere(way):
        assert {m["id"]: m["text"] for m in each.ask("search", limit=99)["memories"]} == ids, each.state
        found = {hit["memory"]["id"]: hit["memory"]["text"] for hit in each.ask("recall", "zebra", limit=99)["hits"]}
        assert found and found.items() <= ids.items(), each.state
        some = ids if isinstance(each, Python) and each.state == "live" else [*ids][::6]
        for memory in some:
            assert each.get(memory)["text"] == ids[memory], each.state
            assert each.ask("history", memory)["events"][0]["body"]["text"] == ids[memory], each.state
    way.ask("export", str(tmp_path / "export.jsonl"))
    with Python(Place(tmp_path / "other", tmp_path / "other keys")) as other:
        assert other.memory.import_(tmp_path / "export.jsonl").new == len(ids)
        assert sorted(other.listed(limit=99, namespaces=[NAMESPACE])) == sorted(ids.values())


LARGE = {
    "200 kB": "zebra " + "x" * 200_000,
    "200 kB of emoji": "zebra " + "🦓" * 50_000,
    "1 MiB": "zebra " + "é" * (2**19 - 3),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_long_text_is_kept_whole(way: Way, name: str) -> None:
    """Up to a mebibyte; one byte more is refused, with the limit, and nothing of it is stored."""
    memory = way.store(LARGE[name])
    for each in everywhere(way):
        assert each.get(memory)["text"] == LARGE[name], each.state
        assert each.ids("zebra") == [memory], each.state
    refused = way.refusal("store", "x" * (2**20 + 1))
    assert refused.kind == "Refused" and "1,048,576" in refused.message
    assert way.ask("search")["total"] == 1


SURROGATES = ["\ud800", "zebra \udfff okapi", "\udc80zebra", "\ud83e zebra \udd93", "zebra" * 100 + "\udead"]


def test_half_a_character_is_refused_in_words_and_disables_nothing(way: Way) -> None:
    """In a text and in one row of many: what is wrong is said, and the memory works on."""
    memory = way.store("zebra")
    for wrong in SURROGATES:
        assert way.refusal("store", wrong).kind == "Refused"
    rows = way.ask_rows(["okapi", SURROGATES[1], "gnu"])
    assert [row["outcome"] for row in rows] == ["stored", "refused", "stored"]
    assert "surrogate" in rows[1]["reason"]
    assert way.ids("zebra") == [memory]
    assert way.ask("search")["total"] == 3


FIELDS = ["key", "subject", "author", "thread", "label", "trust", "command_id", "namespace", "kind", "source"]


@pytest.mark.parametrize("wrong", ["\ud800", "a\0b", "x" * 100_000], ids=["half", "NUL", "long"])
def test_a_field_that_can_not_be_kept_is_refused_by_name(python: Python, wrong: str) -> None:
    """Every field of a memory, and what is in its lists and its metadata; never a crash, never a stored half."""
    before = python.ask("status")["logs"]["memory"]
    wishes: list[dict[str, Any]] = [{field: wrong} for field in FIELDS]
    wishes += [{field: [wrong]} for field in ("tags", "evidence")]
    wishes += [{"metadata": {wrong: 1}}, {"metadata": {"a": [{"b": wrong}]}}] if len(wrong) < 100 else []
    for wish in wishes:
        refused = python.refusal(
            "store", f"zebra {next(COUNTED)}", **{"place": 1, **wish} if "thread" in wish else wish
        )
        assert refused.kind == "Refused", wish
    assert python.ask("status")["logs"]["memory"] == before


def test_bytes_that_are_no_text_are_refused(place: Place) -> None:
    """On the standard input and as an argument of a real process: an error in one line, no traceback."""
    way = Process(place)
    memory = way.store("zebra")
    for raw in (b"zebra \xc3\x28", b"\xed\xa0\x80", "zebra".encode("utf-16")):
        code, out, error = way.run_bytes(["store", "-"], raw)
        assert (code, out) == (1, ""), error
        assert error.count("\n") == 1 and "Traceback" not in error
    code, _, error = way.run(["store", "zebra \udcff okapi"])  # as Python has a byte that is no text
    assert code == 1 and "surrogate" in error
    assert way.ids("zebra") == [memory]


ODD = st.text(st.sampled_from("\0\r\n\t\ud800\udfff🦓\u202e\ufeff ẅ"), max_size=30)
ANY = st.text(st.characters(categories=None), max_size=200) | ODD


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANY)
def test_any_string_is_kept_or_refused(python: Python, text: str) -> None:
    """There is no third way: what is not refused comes back as it was."""
    namespace = f"n{next(COUNTED)}"
    try:
        memory = python.store(text, namespace=namespace)
    except Refusal as refusal:
        assert refusal.kind == "Refused"
        assert not text.strip() or any("\ud800" <= c <= "\udfff" for c in text)
        assert python.listed(namespaces=[namespace]) == []
    else:
        assert python.get(memory)["text"] == text
        assert python.listed(namespaces=[namespace]) == [text]


@pytest.mark.exhaustive
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANY.filter(lambda text: text.strip() and not any("\ud800" <= c <= "\udfff" for c in text)))
def test_any_string_goes_through_the_command_line(python: Python, text: str) -> None:
    """The standard input is read as it is."""
    python.ask("status")
    with CommandLine(python.place) as way:
        assert way.get(way.store(text, namespace=f"n{next(COUNTED)}"))["text"] == text
