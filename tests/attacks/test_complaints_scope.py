"""Whoever asks in one scope is answered from that one: names, filters and sizes leave nothing in or out by accident."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tallystick.commands.fields import check_namespace
from tallystick.errors import Refused
from tallystick.projections.models import places

from .test_complaints_forgetting import Animals
from .ways import Place, Python, Refusal, Way, everywhere

# ---- wildcards in a name leak other tenants, "foo" matches "foobar"

ALIKE = [
    "foo", "foobar", "foo_bar", "foo%", "fo_", "f%", "%", "_", "*", "?", "foo*", "foo/bar", "foo/ba_", "fo", "Foo",
    "FOO", "foo.", "foo'", 'foo"', "foo\\", "foo;--", "f\u043e\u043e", "\u0192oo", "foo\u0301", "föö", "0", "o",
    "[foo]", "foo[a-z]", "(foo)", "~foo", "foo:bar", "foo-bar", "foo|bar", "NULL", "None", "-foo", "--foo", "数据",
    "数据库", "foo/bar/baz", "foo/bar2", "{foo}", "$foo",
]  # fmt: skip


def told(way: Way, name: str) -> dict[str, list[str]]:
    """What each verb that looks in a namespace tells of one: the texts, or that there are none."""
    return {
        "recall": way.texts("secret", namespaces=[name], limit=99),
        "recall filtered": way.texts("secret", namespaces=[name], limit=99, tags=["t"]),
        "search": way.listed(namespaces=[name], limit=99),
        "context": [
            line[2:] for line in way.context("secret", namespaces=[name]).splitlines() if line.startswith("| ")
        ],
    }


def test_names_that_look_alike_are_different_tenants(way: Way) -> None:
    """No sign of a name is a wildcard, no name is a prefix of another, in whatever verb, count or table."""
    names = [name for name in ALIKE if is_name(name)]
    assert len(names) > 35
    rows = [{"text": f"The secret of tenant {n}", "namespace": name, "tags": ["t"]} for n, name in enumerate(names)]
    way.store_all(rows)
    for each in everywhere(way):
        every = 1 if each.state == "live" and isinstance(each, Python) else 5 if isinstance(each, Python) else 11
        for n, name in [*enumerate(names)][::every]:
            answers = told(each, name)
            assert answers == dict.fromkeys(answers, [f"The secret of tenant {n}"]), (name, each.state)
            below = {f"The secret of tenant {m}" for m, other in enumerate(names) if f"{other}/".startswith(f"{name}/")}
            assert set(each.texts("secret", under=name, limit=99)) == below, (name, each.state)
            assert set(each.listed(under=name, limit=99)) == below, (name, each.state)
        assert each.ask("status")["namespaces"] == dict.fromkeys(names, 1), each.state
        assert {n["name"]: n["memories"] for n in each.ask("namespaces")["namespaces"]} == dict.fromkeys(names, 1)


def test_the_namespace_of_the_settings_is_matched_exactly(way: Way) -> None:
    """Whoever names no namespace looks in and stores to their own one, whatever it looks like."""
    for name in ("foo", "foo%", "foobar", "fo_"):
        way.close()
        way.settings["namespace"] = name
        way.store(f"The secret of {name}")
        assert way.texts("secret") == way.listed() == [f"The secret of {name}"]


def is_name(name: str) -> bool:
    """Whether a namespace may be called so."""
    try:
        check_namespace(name)
    except Refused:
        return False
    return True


SIGNS = st.sampled_from(list("ab%_*?/\\'\".-[]^$|()") + ["á", "数", "\u0430"])
NAME = st.text(SIGNS, min_size=1, max_size=6).filter(is_name)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    """One store for many examples."""
    folder: Path = tmp_path_factory.mktemp("scope")
    with Python(Place(folder / "store", folder / "keys")) as way:
        yield way


COUNTED = iter(range(10**9))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAME, NAME)
def test_any_two_names_are_two_tenants(python: Python, one: str, other: str) -> None:
    """Of any two different names neither is told what is in the other."""
    assume(one != other)
    number = next(COUNTED)
    texts = {name: f"secret {number} of {'one' if name == one else 'other'}" for name in (one, other)}
    for name, text in texts.items():
        python.store(text, namespace=name, key=f"k{number}", subject=f"s{number}")
    for name, text in texts.items():
        assert python.texts(f"secret {number}", namespaces=[name], subject=f"s{number}") == [text]
        assert python.listed(namespaces=[name], where={"key": f"k{number}"}) == [text]
        assert python.texts("secret", under=name, subject=f"s{number}")[0] in texts.values()


# ---- a filter is ignored by some path

NEW_YEAR = "2026-01-01T00:00:00Z"
MATCHING: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "tags": ({"tags": ["red"]}, {"tags": ["red", "round"]}, {"tags": ["blue", "round"]}),
    "tags, all of them": ({"tags": ["red", "round"]}, {"tags": ["red", "round", "x"]}, {"tags": ["red"]}),
    "kinds": ({"kinds": ["fact"]}, {"kind": "fact"}, {"kind": "note"}),
    "sources": ({"sources": ["tool"]}, {"source": "tool"}, {"source": "human"}),
    "subject": ({"subject": "user:ana"}, {"subject": "user:ana"}, {"subject": "user:anna"}),
    "since": ({"since": NEW_YEAR}, {"occurred_at": NEW_YEAR}, {"occurred_at": "2025-12-31T23:59:59Z"}),
    "until": ({"until": NEW_YEAR}, {"occurred_at": "2025-12-31T23:59:59Z"}, {"occurred_at": NEW_YEAR}),
    "importance": ({"min_importance": 0.5}, {"importance": 0.5}, {"importance": 0.49}),
    "where a field": ({"where": {"author": "Ana"}}, {"author": "Ana"}, {"author": "Anna"}),
    "where no value": ({"where": {"author": None}}, {}, {"author": "Ana"}),
    "where metadata": ({"where": {"team": "web"}}, {"metadata": {"team": "web"}}, {"metadata": {"team": "ops"}}),
    "where more": ({"where": {"importance": {"$gt": 0.2, "$lt": 0.4}}}, {"importance": 0.3}, {"importance": 0.4}),
    "where one of": ({"where": {"m": {"$in": ["a", "b"]}}}, {"metadata": {"m": "b"}}, {"metadata": {"m": "c"}}),
    "status": ({"status": ["expired"]}, {"expires_at": "2001-01-01T00:00:00Z"}, {"expires_at": "2901-01-01T00:00:00Z"}),
    "namespaces": ({"namespaces": ["other"]}, {"namespace": "other"}, {}),
    "under": ({"under": "org"}, {"namespace": "org/acme"}, {"namespace": "organ"}),
}  # fmt: skip


def asked(way: Way, verb: str, filters: dict[str, Any]) -> set[str]:
    """The texts that a verb hands out."""
    if verb == "search":
        return set(way.listed(**filters))
    if verb == "context":
        return {line[2:] for line in way.context("zebra", **filters).splitlines() if line.startswith("| ")}
    return set(way.texts("zebra", **filters))


@pytest.mark.parametrize("name", MATCHING)
def test_every_filter_holds_on_every_verb_that_reads(way: Way, name: str) -> None:
    """Recall, search and context hand out what fulfils a filter and nothing else."""
    filters, fulfils, does_not = MATCHING[name]
    way.store_all([{"text": "zebra yes", **fulfils}, {"text": "zebra no", **does_not}])
    verbs = ("recall", "search", "context")
    for n, each in enumerate(everywhere(way)):
        for verb in verbs if isinstance(each, Python) else (verbs[n % 3],):
            assert asked(each, verb, filters) == {"zebra yes"}, (verb, each.state)


def test_the_filter_of_actors_holds_on_every_verb(way: Way) -> None:
    """Each sees what one actor stored, whoever asks."""
    for actor in ("agent:planner", "agent:plan", "user:ana"):
        way.close()
        way.settings["actor"] = actor
        way.store(f"zebra by {actor}")
    for each in everywhere(way):
        for verb in ("recall", "search", "context"):
            assert asked(each, verb, {"actors": ["agent:plan"]}) == {"zebra by agent:plan"}, (verb, each.state)
        assert {event["actor"] for event in each.ask("log", actor="agent:plan")["events"]} == {"agent:plan"}


def test_all_filters_together_hold(way: Way) -> None:
    """What misses a single one of many is left out."""
    fitting = {
        "tags": ["red"], "kind": "fact", "source": "tool", "subject": "user:ana", "occurred_at": "2026-01-02T00:00:00Z",
        "importance": 0.9, "author": "Ana", "metadata": {"team": "web"},
    }  # fmt: skip
    misses: list[dict[str, Any]] = [
        {"tags": []}, {"kind": "note"}, {"source": "human"}, {"subject": "user:bob"}, {"importance": 0.1},
        {"author": "Bob"}, {"occurred_at": "2025-01-02T00:00:00Z"}, {"metadata": {"team": "ops"}}, {"namespace": "o"},
    ]  # fmt: skip
    way.store_all([{"text": f"zebra {n}", **fitting, **missed} for n, missed in enumerate([{}, *misses])])
    filters = {
        "tags": ["red"], "kinds": ["fact"], "sources": ["tool"], "subject": "user:ana", "since": "2026-01-01T00:00:00Z",
        "until": "2027-01-01T00:00:00Z", "min_importance": 0.5, "where": {"author": "Ana", "team": "web"},
        "actors": [way.settings["actor"]],
    }  # fmt: skip
    for each in everywhere(way):
        for verb in ("recall", "search", "context"):
            assert asked(each, verb, filters) == {"zebra 0"}, (verb, each.state)


UNFIT: list[dict[str, Any]] = [
    {"user": "ana"}, {"tag": ["x"]}, {"min_importance": "high"}, {"status": "gone"}, {"since": "yesterday"},
    {"where": {"a": {"$x": 1}}},
]  # fmt: skip


@pytest.mark.parametrize("filters", UNFIT, ids=str)
def test_a_filter_that_can_not_be_applied_is_no_filter_that_is_dropped(python: Python, filters: dict[str, Any]) -> None:
    """What is misspelt or has no meaning is refused, by recall and by search: it must not find everything."""
    for verb, words in (("recall", ["zebra"]), ("search", [])):
        with pytest.raises(Refusal, match="Refused"):
            python.ask(verb, *words, **filters)


# ---- the nearest are picked before they are filtered

MANY = 1100
"""More than recall looks at all of."""


@pytest.fixture
def crowded(way: Way, monkeypatch: pytest.MonkeyPatch) -> Way:
    """Three memories in a namespace of their own, and in a crowd of others that answer as well."""
    monkeypatch.setattr(places, "resolve_embedder", lambda model: None if model == "none" else Animals())
    monkeypatch.setattr(places, "name_of", lambda model: model if model == "none" else "animals")
    way.store_all([f"zebra zebra zebra {n}" for n in range(MANY)])
    way.store_all([{"text": f"a zebra and {n} okapis", "namespace": "tiny", "tags": ["rare"]} for n in range(3)])
    way.store_all([{"text": f"zebra and okapi {n}", "tags": ["rare"], "author": "Ana"} for n in range(3)])
    return way


WAYS_AND_MODELS = [("python", "none"), ("python", "auto"), ("command line", "auto")]
RARE: list[dict[str, Any]] = [
    {"namespaces": ["tiny"]},
    {"tags": ["rare"]},
    {"where": {"author": "Ana"}},
    {"under": "tiny"},
]


@pytest.mark.parametrize(("way", "model"), WAYS_AND_MODELS, indirect=["way"])
def test_a_few_among_very_many_are_all_found(crowded: Way, model: str) -> None:
    """By words and by meaning, in a small namespace or by a filter that few fulfil, however many lie nearer."""
    crowded.close()
    crowded.settings["model"] = model
    for each in everywhere(crowded):
        for filters in RARE:
            assert len(each.ids("zebra", limit=10, **filters)) == 3, (filters, each.state)


# ---- more than an index gives at once is an error that is swallowed


@pytest.mark.parametrize(("way", "model"), WAYS_AND_MODELS, indirect=["way"])
def test_as_many_are_found_as_are_asked_for(crowded: Way, model: str) -> None:
    """A limit beyond what any stage takes by default, and beyond 4,096, finds all there are."""
    crowded.close()
    crowded.settings["model"] = model
    assert len(set(crowded.ids("zebra", limit=MANY - 10))) == MANY - 10
    for limit in (4097, 2**40):
        assert len(set(crowded.ids("zebra", limit=limit))) == MANY + 3
    assert len(crowded.listed(limit=100_000)) == MANY + 3


@pytest.mark.exhaustive
def test_more_than_4096_are_found(way: Way) -> None:
    """All five thousand, by recall and by search, after a rebuild too."""
    ids = set(way.store_all([f"zebra number {n}" for n in range(5000)]))
    for each in everywhere(way):
        assert set(each.ids("zebra", limit=5000)) == ids, each.state
        assert len(each.ids("zebra", limit=4097)) == 4097, each.state
        assert len(each.listed(limit=5000)) == 5000, each.state


@pytest.mark.parametrize("limit", [0, -1, -(2**63)])
def test_a_limit_of_nothing_is_refused(python: Python, limit: int) -> None:
    """It does not mean all, nor an empty answer."""
    for verb, words in (("recall", ["zebra"]), ("search", [])):
        assert python.refusal(verb, *words, limit=limit).kind == "Refused"
