"""LOCOMO's conversations as chats: one speaker is the user, the other the assistant, and questions have pronouns.

Each speaker is the user once. A question on the user is put in the first person, one on the assistant in the second:
"What did Caroline tell Melanie about her dog?" becomes "What did I tell you about her dog?".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.locomo import Conversation

_HELPS = "did|do|has|have|had|was|is|were|are|would|will|can|could|might|should|does"


def as_chats(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Two chats for each conversation, the second with the roles exchanged."""
    return [_chat(each, user) for each in conversations for user in speakers(each)]


def speakers(conversation: Conversation) -> list[str]:
    """Who speaks, in the order of the alphabet."""
    return sorted({speaker for session in conversation.sessions for _, speaker, _ in session.turns})


def _chat(conversation: Conversation, user: str) -> Conversation:
    assistants = [speaker for speaker in speakers(conversation) if speaker != user]
    sessions = [
        session._replace(
            turns=tuple((turn, "user" if by == user else "assistant", text) for turn, by, text in session.turns)
        )
        for session in conversation.sessions
    ]
    questions = [each._replace(text=as_asked(each.text, user, assistants)) for each in conversation.questions]
    return Conversation(f"{conversation.name}/{user}", tuple(sessions), tuple(questions))


def as_asked(question: str, user: str, assistants: Sequence[str]) -> str:
    """A question as the user asks the assistant."""
    named = {name for name in (user, *assistants) if re.search(rf"\b{re.escape(name)}\b", question)}
    for name in (user, *assistants):
        acts, suffers, owns = ("I", "me", "my") if name == user else ("you", "you", "your")
        if named == {name}:
            question = re.sub(r"\b(?:his|her|their)\b", owns, question)
        question = re.sub(rf"\b{re.escape(name)}['’]s?(?!\w)", owns, question)
        question = re.sub(rf"\b({_HELPS}) {re.escape(name)}\b", rf"\1 {acts}", question, flags=re.IGNORECASE)
        question = re.sub(rf"\b{re.escape(name)}\b", suffers, question)
    for verb, agrees in {"does": "do", "Does": "Do", "has": "have", "Has": "Have"}.items():
        question = re.sub(rf"\b{verb}(?= (?:I|you)\b)", agrees, question)
    return question
