"""Engineering notes that follow one another for years: what holds for which service, corrected now and then.

Made by a grammar, the same each time: nearly twenty thousand services, twenty things that may hold for one, values,
causes and tickets, so that no two notes say the same. A question shares the names of service and thing with a note.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, get_args

from tallystick.projections.tokens import STOP_WORDS, tokens

Sort = Literal["key", "revise", "supersedes", "unmarked"]
SORTS: tuple[Sort, ...] = get_args(Sort)
"""How a correction is told: under the same key, as a revision, naming what it supersedes, or merely stated later."""
MARKED = SORTS[:3]

EVERY = 6
"""Every sixth note corrects an earlier one."""
SETTLED = 100
"""No note is corrected before so many others have followed."""
PER_SERVICE = 12

_FIRST = (
    "amber basalt birch cedar cobalt copper coral crimson delta ember fjord flint garnet glacier harbor hazel indigo "
    "ivory jade juniper lagoon lilac maple marble meadow nickel ochre onyx opal orchid pebble pepper quartz raven "
    "river saffron slate tundra velvet willow"
).split()
_SECOND = (
    "anchor atlas badger beacon bison canyon comet condor crane cricket dolphin falcon ferry finch gecko heron ibex "
    "jackal kestrel lantern lemur lynx magpie marlin otter owl pelican pilot puffin robin salmon sparrow stork swift "
    "tapir tern viper walrus weasel wren"
).split()
_KINDS = "api batch cache cron edge feed gateway index mailer proxy sync worker".split()
_UNITS = {
    "timeout": "{} seconds", "quota": "{} gigabytes", "replicas": "{} instances", "retention": "{} months",
    "heap": "{} megabytes", "port": "number 8{}", "threshold": "{} percent", "cooldown": "{} minutes",
    "shards": "{} partitions", "concurrency": "{} threads", "backlog": "{} messages", "schedule": "{} past midnight",
    "owner": "squad {}", "region": "zone {}", "database": "cluster pg{}", "branch": "release line {}",
    "bucket": "store s{}", "certificate": "chain c{}", "licence": "contract {}", "rollback": "image build {}",
}  # fmt: skip
_THINGS = tuple(_UNITS)
_STATED = (
    "{service}: {thing} set to {value}, {cause} ({ticket})",
    "We run {service} with {value} as {thing}, {cause} ({ticket})",
    "Agreed in the weekly sync: {service} gets {value} for {thing}, {cause} ({ticket})",
)
_CORRECTED = (
    "{service}: {thing} moves to {value}, {cause} ({ticket})",
    "{service} switched to {value} as {thing}, {cause} ({ticket})",
    "After the retrospective {service} has {value} for {thing}, {cause} ({ticket})",
)
_CAUSES = (
    "since latency doubled in", "after an outage in", "to cut the bill of", "because audits require it in",
    "as traffic grew in", "following the vendor's advice for", "because memory ran out in", "to match",
    "after load tests in", "since customers complained in",
)  # fmt: skip
_PLACES = (
    "Dublin Oslo Madrid Singapore Toronto Warsaw Nairobi Lima Osaka Perth Denver Lyon staging canary production"
).split()
_ASKED = (
    "Before I page anybody, which {thing} should callers assume about {service} these days?",
    "Somebody on the incident bridge asks what {thing} applies when {service} is deployed tonight",
    "Reviewing a pull request: can you remind me which {thing} {service} uses at present?",
    "I write a runbook and need the valid {thing} behind {service}, please",
    "The dashboard looks odd tonight, so what {thing} would you expect from {service}?",
    "Onboarding a colleague: tell her the {thing} that {service} really relies upon",
)
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


class Note(NamedTuple):
    """One note: what it is on (by the number of the fact), what it says and when; whether it corrects an older one."""

    fact: int
    text: str
    at: datetime
    corrects: bool


class Journal:
    """Notes as they are written, and what is known of each fact: its statements in order, the last of them current."""

    def __init__(self) -> None:
        self._draw = random.Random(10)
        self._written = 0
        self._last: list[int] = []
        self.statements: list[list[str]] = []

    def write(self, count: int) -> list[Note]:
        """The next notes."""
        return [self._next() for _ in range(count)]

    def sort_of(self, fact: int) -> Sort:
        """How a fact is corrected, if it is: a quarter each."""
        return SORTS[fact % len(SORTS)]

    def name_of(self, fact: int) -> tuple[str, str]:
        """The service and the thing that a fact is on."""
        service, thing = divmod(fact, PER_SERVICE)
        turn, pair = divmod(service, len(_FIRST) * len(_SECOND))
        second, first = divmod(pair * 7919 % (len(_FIRST) * len(_SECOND)), len(_FIRST))
        kind = _KINDS[(pair + turn) % len(_KINDS)]
        return f"{_FIRST[first]}-{_SECOND[second]}-{kind}", _THINGS[(thing + service) % len(_THINGS)]

    def question(self, fact: int) -> str:
        """What an engineer asks who needs to know it."""
        service, thing = self.name_of(fact)
        return _ASKED[fact * 31 % len(_ASKED)].format(service=service, thing=thing)

    def corrected(self, sort: Sort) -> list[int]:
        """The facts of a sort that have been corrected."""
        return [fact for fact, said in enumerate(self.statements) if len(said) > 1 and self.sort_of(fact) == sort]

    def _next(self) -> Note:
        self._written += 1
        number, wanted = divmod(self._written, EVERY)
        fact = self._settled(number % len(SORTS)) if wanted == 0 else None
        corrects = fact is not None
        if fact is None:
            fact = len(self.statements)
            self.statements.append([])
            self._last.append(0)
        text = self._say(fact, _CORRECTED if corrects else _STATED)
        self.statements[fact].append(text)
        self._last[fact] = self._written
        return Note(fact, text, _BEGIN + timedelta(minutes=11 * self._written), corrects)

    def _settled(self, sort: int) -> int | None:
        """A fact of a sort that was stated long enough ago."""
        facts = range(sort, len(self.statements), len(SORTS))
        for _ in range(20):
            fact = self._draw.choice(facts) if facts else 0
            if facts and self._last[fact] <= self._written - SETTLED:
                return fact
        return None

    def _say(self, fact: int, forms: Sequence[str]) -> str:
        service, thing = self.name_of(fact)
        return self._draw.choice(forms).format(
            service=service,
            thing=thing,
            value=_UNITS[thing].format(self._draw.randint(2, 990)),
            cause=f"{self._draw.choice(_CAUSES)} {self._draw.choice(_PLACES)}",
            ticket=f"OPS-{self._written}",
        )


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that tell something; a name with hyphens is one word."""
    words = (word for word in re.findall(r"[\w-]+", text.lower()) if word not in STOP_WORDS)
    return frozenset(found[-1] for word in words if (found := tokens(word)))


def overlap(question: str, note: str) -> float:
    """Which share of the content words the two have in common, of the shorter of them."""
    asked, said = content_words(question), content_words(note)
    return len(asked & said) / min(len(asked), len(said))
