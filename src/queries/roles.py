"""Whom a question in the first or second person is about: the user of a chat, or its assistant."""

from __future__ import annotations

import re

USER, ASSISTANT = ("user", "human"), ("assistant", "ai", "bot", "model")
"""What authors are called who are known by their role alone."""

_SAID = "said|told|gave|wrote|made|came|found|chose|showed|shared|thought|taught|[a-z]+[a-df-z]ed"
_I_TOLD = re.compile(r"\bi(?:'ve| have| had)? (?:told|asked|showed|gave|sent) you\b")
_YOU_SAID = re.compile(
    rf"\byou(?:'ve| have| had)? (?:{_SAID})\b|\b(?:did|have|had) you\b|"
    r"\byour (?:answer|advice|explanation|list|recommendation|reply|suggestion)s?\b|"
    r"\bour (?:[a-z]+ ){0,2}(?:chat|conversation|discussion|session)s?\b"
)
_OF_MINE = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|myself)\b")


def role_of(asked: str) -> tuple[str, ...]:
    """The names of the role that a question is about, by its pronouns (English); none where it has none that tell.

    Who asks is the user: "what did I say?". "What did you say to me?" is about the assistant, and so is "remind me of
    our last chat"; "can you help?" is about neither.
    """
    text = asked.casefold().replace("’", "'")
    if _YOU_SAID.search(text) and not _I_TOLD.search(text):
        return ASSISTANT
    return USER if _OF_MINE.search(text) else ()
