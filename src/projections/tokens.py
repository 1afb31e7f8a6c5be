"""The words of a text, ready for the lexical index.

A token holds only a-z, 0-9, letters and digits beyond ASCII and the marks that belong to them, so FTS5
with `tokenize='ascii'` takes it as one term and never as syntax. The same Unicode tables (Python's) and
the same stemmers (snowballstemmer's, and two rules of our own) give the same tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import chain, pairwise
from typing import Any

LONGEST_TOKEN = 64
"""Characters of a token; the rest of a longer word is cut off."""

STOP_WORDS = frozenset(
    """
    a about am an and any are as at be been being but by can could did do does doing for from had has have
    having he her hers him his how i if in into is it its me my no nor not of on or our ours she should so
    some such than that the their theirs them then there these they this those to too us very was we were
    what when where which while who whom whose why with would you your yours
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont wouldnt
    """.split()
)
"""English function words. Left out on purpose: "may" and "will", which are names as well."""

_RULES = 2
"""Another number for every change to what this module makes of some text, so that the views are made anew."""

_CACHED = 32768
_LETTER = r"[^\x00-/:-@\[-^`{-\x7f]"  # after folding, all that is left beyond ASCII belongs to words
_CHUNK = re.compile(f"{_LETTER}+(?:['./-]{_LETTER}+)*")
_JOINT = re.compile(r"[_'-]")
_CONTRACTION = re.compile(r"'(?:s|m|d|ll|re|ve)(?![a-z0-9])", re.IGNORECASE)
_NOT = re.compile(r"n't$", re.IGNORECASE)
_ASCII_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OTHER_PIECE = re.compile(r"[0-9]+|[^0-9]+")

_HAN = r"\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = r"\u302a-\u302f\u3041-\u309f\u30a1-\u30fa\u30fc-\u312f\u31a0-\u31bf\u31f0-\u31ff"
_HANGUL = r"\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"
_CJK = _HAN + _KANA + _HANGUL
_THAI_LAO = r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"
_KHMER = r"\u1780-\u17d3\u17d7-\u17dd"
_MYANMAR = r"\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\uaa60-\uaa7f"
_SOUTH_EAST = _THAI_LAO + _KHMER + _MYANMAR
_MARK = (
    r"\u302a-\u302f\u3099\u309a\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    r"\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f"
    r"\u109a-\u109d\u17b4-\u17d3\u17dd"
)
_UNIT = re.compile(f".[{_MARK}]*")

_MARK_RUN = re.compile(r"([^\w\x00-\x7f]{30})[^\w\x00-\x7f]+")
_ACCENTS = (
    (0x0300, 0x036F), (0x0483, 0x0489), (0x0591, 0x05C7), (0x0610, 0x061A), (0x064B, 0x065F),
    (0x0670, 0x0670), (0x06D6, 0x06ED), (0x0711, 0x074A), (0x0898, 0x08FF), (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE00, 0xFE2F), (0xE0100, 0xE01EF),
)  # fmt: skip
_SPELLINGS = {
    "ß": "ss", "ẞ": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
    "đ": "d", "Đ": "D", "ħ": "h", "Ħ": "H", "ŧ": "t", "Ŧ": "T", "ı": "i",
    "ى": "ي", "ی": "ي", "ک": "ك", "\u0640": "",
    "‘": "'", "’": "'", "ʼ": "'", "׳": "'", "‐": "-", "\u200b": " ",
}  # fmt: skip


STEMMER = "snowballstemmer 3.1.1"
"""The stemmer, pinned in pyproject.toml, since another one may make other words of the same text."""

_SNOWBALL = ((0x0370, 0x03FF, "greek"), (0x0400, 0x052F, "russian"))
_AFFIXES = (
    (0x05D0, 0x05EA, re.compile("(?<=...)(?:ים|ות|ה|י)$"), re.compile("^[והבכלמש]+(?=...)")),
    (
        0x0621, 0x06FF, re.compile("(?<=..)(?:ها|ان|ات|ون|ين|يه|ية|ه|ة|ي)$"),
        re.compile("^و?(?:ال|بال|كال|فال|لل)(?=..)|^و(?=...)"),
    ),
)  # fmt: skip
"""The first and last letter of a script, endings of its words, and particles joined to their front."""
_FINALS = str.maketrans("ךםןףץ", "כמנפצ")


def words_version() -> tuple[int, str, str]:
    """What decides the tokens of a text: the version of the rules here, and those of Unicode and of the stemmer."""
    return _RULES, unicodedata.unidata_version, STEMMER


def tokens(text: str) -> list[str]:
    """The tokens to index a text under, repeated as often as they occur.

    Compatibility forms, case and accents are folded, vowel points and tatweel dropped, English stop words
    dropped (unless there is nothing else), and English, Russian, Greek, Arabic and Hebrew words stemmed, each by its
    script. An identifier gives its parts and
    itself joined up: fooBar, foo_bar and foo-bar all give foo, bar, foobar. Scripts written without spaces
    give every character and every overlapping pair; a character keeps its combining marks.

    Never raises. The time is linear in the length of the text.
    """
    return _tokens(text, False, False) or _tokens(text, False, True)


def query_tokens(text: str) -> list[str]:
    """The tokens to look for: as `tokens` makes them, each once, in order.

    Of scripts written without spaces a query asks for pairs alone, which are more telling, except where a
    run is one character long or a single Chinese character stands between kana or Hangul.
    """
    return list(dict.fromkeys(_tokens(text, True, False) or _tokens(text, True, True)))


def says_nothing(text: str) -> bool:
    """Whether a question has stop words alone, or no words: they stand only in what says no more either."""
    return not _tokens(text, True, False)


def _tokens(text: str, asked: bool, keep: bool) -> list[str]:
    """Tokens of a query (`asked`) or a document, stop words included or not (`keep`)."""
    chunks = _CHUNK.findall(text if text.isascii() else _fold(text))
    each = _asked_for if asked else _indexed
    if keep or max(map(len, chunks), default=0) > LONGEST_TOKEN:  # rare, or too long to be remembered
        each = partial(_chunk_tokens, asked=asked, keep=keep)
    return list(chain.from_iterable(map(each, chunks)))


class _Folding(dict[int, str]):
    """What each character becomes after NFKD, worked out when first met.

    The entries stay fewer than the characters Unicode assigns.
    """

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        if category in ("Cn", "Co", "Cs"):
            return " "
        self[code] = _folded(chr(code), category)
        return self[code]


def _folded(character: str, category: str) -> str:
    """One character beyond ASCII: its plain spelling, nothing for an accent, a space for a separator."""
    if character in _SPELLINGS:
        return _SPELLINGS[character]
    if category == "Cf":
        return ""
    if category[0] == "M":
        accent = any(first <= ord(character) <= last for first, last in _ACCENTS)
        return "" if accent else character
    if category == "Nd":
        return str(unicodedata.digit(character))
    return character if character.isalnum() else " "


_FOLDING = _Folding({code: chr(code) for code in range(128)})


def _fold(text: str) -> str:
    """The text in plain spelling, case kept; beyond ASCII it holds only letters, digits and their marks.

    Accents go in Latin, Greek, Cyrillic, Hebrew, Arabic and Syriac; marks of other scripts (Thai tones,
    Indic vowels, Japanese voicing) make other words and stay.
    """
    plain = unicodedata.normalize("NFKD", _stream_safe(text)).translate(_FOLDING)
    return unicodedata.normalize("NFC", _stream_safe(plain))


def _stream_safe(text: str) -> str:
    """The text with a space in place of what follows 30 marks in a row: to sort more takes quadratic time.

    As the Stream-Safe Text Format of Unicode Standard Annex 15, section 13, limits them.
    """
    return _MARK_RUN.sub(r"\1 ", text)


@lru_cache(1)
def _scripts() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds runs of scripts written without spaces (a group each), and single Chinese characters.

    Compiled when first needed: it takes 10 ms.
    """
    runs = f"([{_CJK}]+)|([{_SOUTH_EAST}]+)|[^{_CJK}{_SOUTH_EAST}]+"
    return re.compile(runs), re.compile(f"(?<![{_HAN}])[{_HAN}](?![{_HAN}])")


def _chunk_tokens(chunk: str, asked: bool, keep: bool) -> list[str]:
    """Tokens of a piece of folded text without spaces in it."""
    if chunk.isascii():
        return _compound_tokens(chunk, keep)
    found: list[str] = []
    for run in _scripts()[0].finditer(chunk):
        found += _pair_tokens(run[0], asked) if run.lastindex else _compound_tokens(run[0], keep)
    return found


_indexed: Callable[[str], list[str]] = lru_cache(_CACHED)(partial(_chunk_tokens, asked=False, keep=False))
_asked_for: Callable[[str], list[str]] = lru_cache(_CACHED)(partial(_chunk_tokens, asked=True, keep=False))


def _pair_tokens(run: str, asked: bool) -> list[str]:
    """Characters and overlapping pairs of a run of a script written without spaces."""
    units: list[str] = _UNIT.findall(run)
    if len(units) == 1:
        return units
    singles = _scripts()[1].findall(run) if asked else units
    return singles + [first + second for first, second in pairwise(units)]


def _compound_tokens(chunk: str, keep: bool) -> list[str]:
    """Tokens of a word, identifier, dotted name or path: its parts, each name joined up, all joined up."""
    if chunk.isascii() and chunk.isalpha() and chunk.islower():  # one word, as most are
        return [_stem(chunk[:LONGEST_TOKEN])] if keep or chunk not in STOP_WORDS else []
    names = [name for part in chunk.replace("/", ".").split(".") if (name := _parts(part))]
    words = [part for name in names for part in name]
    words += ["".join(name) for name in names if len(name) > 1]
    if len(names) > 1:
        words.append("".join(part for name in names for part in name))
    return [_stem(word[:LONGEST_TOKEN]) for word in words if keep or word not in STOP_WORDS]


def _parts(name: str) -> list[str]:
    """The lower-case parts of one name: split at _ - ' and between humps, letters and digits.

    The possessive 's and other endings after an apostrophe are dropped; "don't" is one part.
    """
    if "'" in name:
        name = _NOT.sub("nt", _CONTRACTION.sub("", name))
    return [part.casefold() for run in _JOINT.split(name) for part in _humps(run)]


def _humps(run: str) -> list[str]:
    """Split letters from digits and humps from each other, unless that would shred a hash or a key.

    More than three parts of fewer than 2.5 characters on average carry no words.
    """
    parts: list[str] = (_ASCII_PIECE if run.isascii() else _OTHER_PIECE).findall(run)
    return [run] if len(parts) > 3 and len(run) < 2.5 * len(parts) else parts


@lru_cache(_CACHED)
def _stem(word: str) -> str:
    """The stem of a word of letters, as its script has it; anything else as it is.

    Languages that share a script share its stemmer: what matters is that the forms of a word meet.
    """
    if not word.isalpha():
        return word
    if word.isascii():
        return _snowball("english", word)
    first = ord(word[0])
    for start, end, name in _SNOWBALL:
        if start <= first <= end:
            return _snowball(name, word)
    for start, end, endings, particles in _AFFIXES:
        if start <= first <= end:
            return particles.sub("", endings.sub("", word)).translate(_FINALS)
    return word


def _snowball(name: str, word: str) -> str:
    """The stem by one of Snowball's algorithms."""
    return str(_stemmers()[name]().stemWord(word)) or word


@lru_cache(1)
def _stemmers() -> dict[str, Any]:
    # Kept out of start-up: the package imports the stemmers of every language. Named by their modules, since
    # the package itself hands out PyStemmer's, of another version, where that is installed.
    from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415
    from snowballstemmer.greek_stemmer import GreekStemmer  # noqa: PLC0415
    from snowballstemmer.russian_stemmer import RussianStemmer  # noqa: PLC0415

    return {"english": EnglishStemmer, "greek": GreekStemmer, "russian": RussianStemmer}
