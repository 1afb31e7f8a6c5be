"""What was stored is found by its words: in any script and spelling, whatever stands between them, and by many."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick.projections.tokens import STOP_WORDS, query_tokens

from .ways import Place, Python, Way, everywhere

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")

DECOYS = [
    "The nightly build mails the maintainers",
    "今天天气很好",
    "아무 말도 없다",
    "Ничего такого",
    "ไม่มีอะไร",
    "שום דבר",
    "لا شيء",
]

WITHOUT_SPACES = {
    "我昨天在北京大学图书馆借了三本书": ("北", "书", "图书", "图书馆", "北京大学", "借了", "三本"),
    "數據庫使用預寫日誌模式": ("庫", "日誌", "數據", "預寫日誌模式"),
    "東京都に住んでいる猫はかわいい": ("猫", "東京", "住んで", "かわいい", "東京都に"),
    "データベースのバックアップを毎晩とる": ("データ", "バックアップ", "毎晩", "ﾊﾞｯｸｱｯﾌﾟ"),
    "우리집에는고양이가두마리있다": ("집", "고양이", "우리집", "두마리"),
    "내일 오후 세 시에 서울역에서 만나자": ("서울", "서울역", "오후", "역"),
    "ฉันชอบกินข้าวผัดกุ้งที่ตลาดน้ำ": ("ข้าว", "กุ้ง", "ข้าวผัด", "ตลาดน้ำ"),
    "ຂ້ອຍມັກກິນເຂົ້າໜຽວ": ("ເຂົ້າ", "ກິນ"),
    "ខ្ញុំចូលចិត្តបាយឆា": ("បាយ",),
    "混合 text と English と 한국어 mixed": ("混合", "english", "한국", "mixed"),
    "𠮷野家で牛丼を食べた": ("𠮷", "牛丼", "𠮷野"),
}
"""Texts of scripts written without spaces, and what each is asked for: one character, two, words, more."""

SPELT = {
    "Пароль хранится в связке ключей у Фёдора": ("пароль", "ПАРОЛЬ", "федора", "Фёдора", "связке ключей"),
    "הַסִּיסְמָה שְׁמוּרָה בַּכַּסֶּפֶת": ("הסיסמה", "שמורה", "הַסִּיסְמָה"),
    "كَلِمَةُ المُرورِ في الخِزانة": ("كلمة", "المرور", "الخزانة", "كَلِمَة"),
    "پسورد در گاوصندوق است یک کلید": ("گاوصندوق", "يك", "كليد"),
    "Ο κωδικός βρίσκεται στο χρηματοκιβώτιο": ("κωδικοσ", "ΚΩΔΙΚΟΣ", "χρηματοκιβωτιο"),
    "Mật khẩu nằm trong két sắt ở Đà Nẵng": ("mat khau", "MẬT KHẨU", "da nang", "ket sat"),
    "Żółć gęślą jaźń w Łodzi": ("zolc", "lodzi", "ŻÓŁĆ", "jazn"),
    "Ærøskøbing, naïve café, Straße, İstanbul ışık": ("aeroskobing", "NAIVE", "cafe", "strasse", "istanbul", "isik"),
    "पासवर्ड तिजोरी में रखा है": ("पासवर्ड", "तिजोरी"),
    "கடவுச்சொல் பெட்டகத்தில் உள்ளது": ("கடவுச்சொல்", "பெட்டகத்தில்"),
    "Ｆｕｌｌｗｉｄｔｈ ﬁle ① №7 x²": ("fullwidth", "file", "1", "x2"),
    "გასაღები სეიფშია": ("გასაღები", "სეიფშია"),
    "բանալին չհրկիզվող պահարանում": ("բանալին", "ԲԱՆԱԼԻՆ"),
}
"""Texts with accents, points and cases, and other spellings of their words."""


def questions_of(way: Way, asked: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """All of them at first and in Python; some later, and where each is a run of a command."""
    every = 1 if way.state == "live" else 3
    return asked[:: every if isinstance(way, Python) else 7 * every]


def assert_found(way: Way, texts: dict[str, tuple[str, ...]], form: Form) -> None:
    """Store the texts in one normal form, and find each by its words in either, wherever one asks."""
    asked = [(unicodedata.normalize(other, word), text) for other in FORMS for text in texts for word in texts[text]]
    stored = way.store_all([unicodedata.normalize(form, text) for text in texts] + DECOYS)
    ids = dict(zip(texts, stored, strict=False))
    for each in everywhere(way):
        for word, text in questions_of(each, asked):
            assert each.ids(word)[:1] == [ids[text]], (word, text, each.state)


@pytest.mark.parametrize("form", FORMS)
def test_scripts_without_spaces_are_found_by_one_character_and_more(way: Way, form: Form) -> None:
    """Chinese, Japanese, Korean, Thai, Lao, Khmer: a query of one character, of two, and of words within a sentence."""
    assert_found(way, WITHOUT_SPACES, form)


@pytest.mark.parametrize("form", FORMS)
def test_words_are_found_in_every_spelling(way: Way, form: Form) -> None:
    """With or without accents and points, in capitals, composed or decomposed."""
    assert_found(way, SPELT, form)


CJK = st.characters(categories=["Lo"], include_characters="", min_codepoint=0x3041, max_codepoint=0xD7A3)
ANY_SCRIPT = st.characters(categories=["Lo", "Ll", "Lu"])


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    """One store for many examples, each in a namespace of its own."""
    folder: Path = tmp_path_factory.mktemp("words")
    with Python(Place(folder / "store", folder / "keys")) as way:
        yield way


class Namespaces:
    """Counts the namespaces that examples have taken."""

    taken = 0

    @classmethod
    def fresh(cls) -> str:
        """One that nothing is in."""
        cls.taken += 1
        return f"example/{cls.taken}"


def in_fresh_namespace(way: Python, text: str, question: str) -> list[str]:
    """What a store of one text answers."""
    namespace = Namespaces.fresh()
    way.store(text, namespace=namespace)
    return way.texts(question, namespaces=[namespace])


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(CJK, min_size=1, max_size=20), st.data())
def test_any_one_or_two_characters_of_a_sentence_find_it(python: Python, sentence: str, data: st.DataObject) -> None:
    """Whatever is cut out of a text of a script without spaces."""
    start = data.draw(st.integers(0, len(sentence) - 1))
    cut = sentence[start : start + data.draw(st.integers(1, 2))]
    if query_tokens(cut):
        assert in_fresh_namespace(python, sentence, cut) == [sentence]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(ANY_SCRIPT, min_size=1, max_size=12), min_size=1, max_size=6), st.data())
def test_any_word_of_a_text_finds_it_in_any_case_and_form(
    python: Python, words: list[str], data: st.DataObject
) -> None:
    """Words of all alphabets there are."""
    word = data.draw(st.sampled_from(words))
    changed = data.draw(st.sampled_from([word, word.upper(), word.lower(), unicodedata.normalize("NFKD", word)]))
    text = " ".join(words)
    same = unicodedata.normalize("NFKC", changed.casefold()) == unicodedata.normalize("NFKC", word.casefold())
    if same and query_tokens(word) and unicodedata.normalize("NFKC", word.casefold()) not in STOP_WORDS:
        assert in_fresh_namespace(python, text, changed) == [text]


# ---- what stands between words crashes the search, or finds nothing

HOSTILE = [
    "don't panic", "rock'n'roll", "O'Brien", "user's", "well-known", "state-of-the-art", "key:value", "12:30", "a/b/c",
    "http://host:8080/a/b?c=d&e=f#g", "src/a_b/parse_tree.py", "C:\\Users\\ana", "own:zebra", "NEAR(zebra okapi, 2)",
    "zebra*", "^zebra", "zebra AND", "OR zebra", "NOT zebra", "zebra NOT okapi", "-zebra", "--zebra", "+zebra",
    '"zebra', 'zebra"', '""zebra""', "'zebra", "(zebra", "zebra)", "((zebra", "{own}:zebra", "{zebra", "[zebra]",
    "zebra;", "zebra; DROP TABLE memories; --", "' OR '1'='1 zebra", "100%", "50%_zebra", "_zebra_", "a\\zebra",
    "#zebra", "@ana", "ana@example.org", "C++", "c#", ".NET", "v1.2.3-rc.1", "zebra…", "zebra\0okapi",
    "zebra\tokapi\nGnu", "\u202ezebra", "ze\u00adbra", "zebra\ufeff", "zebra\u200bokapi", "«zebra»", "zebra’s",
    "=zebra", "zebra|okapi", "$zebra", "`zebra`", "~zebra", "<zebra>", "&zebra;", "\\u0041zebra", "%zebra%", "?zebra",
    "!zebra", "zebra^2", "* zebra",
]  # fmt: skip
WORDLESS = [
    "",
    " ",
    "*",
    '"',
    "'",
    "()",
    "-",
    "--",
    ":",
    "/",
    "\\",
    "%",
    "_",
    ";",
    "^",
    "\0",
    "\u200b",
    "…",
    "'" * 2000,
    "{}",
    "NEAR(",
    '"" ""',
]


def test_no_sign_in_a_question_is_an_error_or_hides_what_is_there(way: Way) -> None:
    """Each question finds the text it was taken from, whatever signs it is made of; nothing of it is syntax."""
    texts = {question: f"Remember {question} for later" for question in HOSTILE}
    ids = dict(zip(texts.values(), way.store_all([*texts.values()]), strict=True))
    asked = [*texts.items()]
    for each in everywhere(way):
        for question, text in questions_of(each, asked):
            assert ids[text] in each.ids(question, limit=100), (question, each.state)


def test_a_question_without_a_word_is_no_error(way: Way) -> None:
    """It finds nothing, and says so by an empty answer that is on record."""
    way.store("The zebra sleeps")
    for each in everywhere(way):
        for question, _ in questions_of(each, [(question, "") for question in WORDLESS]):
            answer = each.ask("recall", question)
            assert answer["hits"] == [], (question, each.state)
            assert each.read_only or answer["receipt"], (question, each.state)


def test_the_longest_question_is_answered(way: Way) -> None:
    """Ten thousand words, and one word of a hundred thousand letters."""
    memory = way.store("The zebra sleeps")
    assert way.ids(" ".join(f"word{n}" for n in range(3000)) + " zebra") == [memory]
    assert way.ids("z" * 100_000) == []


SIGNS = st.text(st.sampled_from(string.punctuation + "’“”«»…\u200b\u00ad\t\n"), max_size=5)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SIGNS, st.lists(st.tuples(st.sampled_from(["zebra", "okapi", "AND", "NEAR", "own", "x1"]), SIGNS), min_size=1))
def test_any_signs_around_words_leave_them_words(python: Python, before: str, pieces: list[tuple[str, str]]) -> None:
    """A text of words and signs is found by itself."""
    question = f"{before}zebra " + " ".join(word + signs for word, signs in pieces)
    assert in_fresh_namespace(python, f"memo {question}", question) == [f"memo {question}"]


NAMES = [
    "a'b",
    'a"b',
    "a:b/c",
    "a%",
    "a_",
    "a*",
    "a;--",
    "(a",
    "a\\",
    "-a",
    "--a",
    "á",
    "A",
    "数",
    "a b",
    "a,b",
    "${a}",
    "a=b",
]


def test_no_sign_in_a_filter_is_syntax(way: Way) -> None:
    """Tags, subjects, authors, keys and metadata are compared as they are, by recall and by search."""
    rows = [
        {"text": f"zebra {n}", "tags": [name], "subject": name, "author": name, "key": name, "metadata": {"m": name}}
        for n, name in enumerate(NAMES)
    ]
    ids = dict(zip(NAMES, way.store_all(rows), strict=True))
    filters: list[dict[str, Any]] = [{"tags": [name]} for name in NAMES] + [{"subject": name} for name in NAMES]
    filters += [{"where": {field: name}} for name in NAMES for field in ("author", "key", "m")]
    expected = [*NAMES, *NAMES, *(name for name in NAMES for _ in range(3))]
    for each in everywhere(way):
        every = 1 if each.state == "live" and isinstance(each, Python) else 7 if isinstance(each, Python) else 23
        for given_filters, name in [*zip(filters, expected, strict=True)][::every]:
            assert each.ids("zebra", **given_filters) == [ids[name]], (given_filters, each.state)
            assert [m["id"] for m in each.ask("search", **given_filters)["memories"]] == [ids[name]], given_filters


# ---- several words are taken for a phrase

SENTENCES = {
    "The deployment to production is frozen on Fridays because of the audit": "audit production Fridays",
    "Ana prefers oolong tea over coffee in the morning": "morning what tea does Ana drink",
    "The parser in src/parse_tree.py calls load_config before anything else": "load config parser order",
    "Der Zug nach München fährt um sieben Uhr dreißig": "Uhr Zug München",
    "Бабушка печёт пирог с яблоками по воскресеньям": "яблоками пирог бабушка",
    "昨天的会议决定把数据库迁移到新的服务器": "服务器 会议 数据库",
    "明日の会議は三階の会議室で行います": "三階 会議 明日",
    "내일 회의는 삼층 회의실에서 열립니다": "삼층 내일 회의",
    "اجتماع الغد في الطابق الثالث": "الثالث الغد اجتماع",
}


def test_many_words_are_not_one_phrase(way: Way) -> None:
    """Words in another order, apart from each other, and among others that are not there find the text first."""
    ids = dict(zip(SENTENCES, way.store_all([*SENTENCES, *DECOYS]), strict=False))
    asked = [(words, text) for text, words in SENTENCES.items()]
    asked += [(f"xylophone {words} quux", text) for text, words in SENTENCES.items()]
    for each in everywhere(way):
        for words, text in questions_of(each, asked):
            assert each.ids(words)[:1] == [ids[text]], (words, each.state)


def test_who_has_more_of_the_words_comes_first(way: Way) -> None:
    """Two words weigh more than one, three more than two; who has none is no hit."""
    texts = ["zebra okapi gnu", "zebra okapi lion", "zebra tiger lion", "horse tiger lion"]
    ids = [way.store(text) for text in reversed(texts)][::-1]
    for each in everywhere(way):
        assert each.ids("gnu okapi zebra") == ids[:3], each.state
