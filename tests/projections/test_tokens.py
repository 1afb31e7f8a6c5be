"""Words of a text: what a query must find, what it must not, and that FTS5 takes each token as it is."""

import subprocess
import sys
import time
import unicodedata
from importlib.metadata import version

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlcipher3 import dbapi2

from tallystick.projections.tokens import LONGEST_TOKEN, STEMMER, STOP_WORDS, query_tokens, tokens, words_version

WORD_LIKE = st.characters(categories=("L", "M", "N", "Pc", "Pd")) | st.sampled_from("'./-_ aZ09")
TEXTS = st.text(st.characters(exclude_categories=()), max_size=200) | st.text(WORD_LIKE, max_size=80)

UNITS = ["a", "a-", "aB1", "a'", "n't ", ".", "/.", "é_", "猫", "ก\u0e49", "\u0301\u0323", "\u3099", "\ufdfa", "\ud800"]
UNITS += ["\u0e38" * 15 + "\u0e48" * 15 + between for between in "\u0640\ufe71"]

EVERYTHING = "".join(chr(code) for code in range(0x110000))  # every code point there is, lone surrogates too

FINDS = {
    # what: (query, a document it finds, a document it does not find)
    "Chinese, one character": ("猫", "我家的小猫喜欢睡觉", "我家的小狗喜欢跑步"),
    "Chinese, two characters": ("北京", "我们去年在北京住过", "我们去年在上海住过"),
    "Chinese, a pair and not its halves": ("北京", "北京很大", "东京在北方"),
    "Chinese beside Latin": ("SQLite", "我们使用SQLite数据库", "我们使用别的数据库"),
    "Japanese, kanji before another particle": ("猫は", "この猫が好きです", "この犬が好きです"),
    "Japanese, katakana": ("コーヒー", "毎朝コーヒーを飲む", "毎朝お茶を飲む"),
    "Japanese, half width": ("ｶﾞ", "ガラスの靴", "カラスの巣"),
    "Japanese, decomposed voicing": ("か\u3099き", "がき大将", "かき氷"),
    "Korean, another particle": ("학교는", "어제 학교에 갔다", "어제 병원에 갔다"),
    "Korean, one syllable": ("책", "이 책을 읽었다", "이 글을 읽었다"),
    "Korean, decomposed": (unicodedata.normalize("NFD", "학교"), "어제 학교에 갔다", "어제 병원에 갔다"),
    "Cyrillic, case": ("МОСКВА", "Москва большая", "Париж большой"),
    "Cyrillic, yo": ("елка", "Ёлка стоит в углу", "Полка стоит в углу"),
    "Cyrillic, stress mark": ("замок", "за\u0301мок на горе", "дом на горе"),
    "Cyrillic, endings": ("школе", "Школы закрыты", "Шкалы закрыты"),
    "Ukrainian, apostrophe": ("м'ята", "чай з мʼятою, свіжа мʼята", "чай з лимоном"),
    "Greek, endings": ("άνθρωπος", "οι άνθρωποι", "οι γάτες"),
    "Greek, tonos and final sigma": ("οδοσ", "Η οδός είναι κλειστή", "Η πόλη είναι κλειστή"),
    "Hebrew, vowel points": ("שלום", "שָׁלוֹם לכולם", "בוקר טוב לכולם"),
    "Hebrew, maqaf": ("ספר", "בית־ספר", "בית־קפה"),
    "Hebrew, joined particles": ("בדיקה", "נכשל בשתי הבדיקות", "נכשל בשני מבחנים"),
    "Hebrew, final letters": ("שגיאות דפוס", "השגיאה בדפוסים", "הצלחה במשרד"),
    "Arabic, article and ending": ("كلمات", "والكلمة الأولى", "والجملة الأولى"),
    "Arabic, vowel points": ("محمد", "قال مُحَمَّد نعم", "قال سَعِيد نعم"),
    "Arabic, tatweel": ("كتاب", "كتـــاب جديد", "قلـــم جديد"),
    "Arabic, hamza": ("احمد", "جاء أحمد اليوم", "جاء محمد اليوم"),
    "Arabic, digits": ("2024", "في عام ٢٠٢٤", "في عام ٢٠٢٣"),
    "Persian, letters": ("كتاب", "این کتاب است", "این قلم است"),
    "Thai, a word in a sentence": ("แมว", "ฉันรักแมวของฉัน", "สุนัขวิ่งเร็ว"),
    "Thai, a tone makes another word": ("แม่", "แม่มาแล้ว", "แมวหลับ"),
    "Thai, one character": ("ก", "กข", "ขค"),
    "Lao": ("ລາວ", "ພາສາລາວ", "ຂອບໃຈ"),
    "Khmer": ("ខ្មែរ", "ភាសាខ្មែរ", "អរគុណ"),
    "Burmese": ("မြန်မာ", "ကျွန်တော်မြန်မာစကားပြောတယ်", "ဟုတ်ကဲ့"),
    "Hindi, vowel signs": ("कि", "उसने कहा कि", "उसने कहा का"),
    "Latin, composed": ("café", "The cafe\u0301 is open", "The cave is open"),
    "Latin, decomposed": ("cafe\u0301", "The café is open", "The cave is open"),
    "Latin, letters with a stroke": ("lodz strasse", "Łódź, lange Straße", "Lotse, lange Reise"),
    "Turkish, dotted and dotless": ("istanbul", "İstanbul güzel", "Ankara güzel"),
    "French, elision": ("école", "à l’école", "au collège"),
    "English, endings": ("running dogs", "The dog barked", "A cat walked"),
    "English, possessive": ("Caroline", "Caroline’s book", "Carol’s book"),
    "English, a name with an apostrophe": ("obrien", "Mr O'Brien", "Mr Bryant"),
    "full width": ("ＳＱＬｉｔｅ", "sqlite", "postgres"),
    "code, a part of a path": ("index", "src/vector_index.py", "src/vector.py"),
    "code, a name in a path": ("vectorindex", "src/vector_index.py", "src/vector/index.py"),
    "code, dotted": ("os.path.join", "see path in os", "see split"),
    "code, letters and digits": ("utf8", "encoded as UTF-8", "encoded as latin-1"),
    "code, acronym": ("http", "parseHTTPResponse", "parseResponse"),
    "code, a hash is one word": ("a1b2c3d4e5", "commit a1b2c3d4e5", "commit a1b2c3d4e6"),
    "code, dashes in an identifier": ("550e8400e29b41d4", "id 550e8400-e29b-41d4", "id 660f8401-f30c-52e5"),
    "soft hyphen": ("example", "exam\u00adple", "exam ple"),
    "zero-width space": ("exam", "exam\u200bple", "exam\u200dple"),
}


def assert_plain(words: list[str]) -> None:
    """Each token is a-z, 0-9 and letters, digits and marks beyond ASCII, 1 to 64 of them."""
    for token in words:
        assert 1 <= len(token) <= LONGEST_TOKEN
        for character in token:
            if character.isascii():
                assert character in "abcdefghijklmnopqrstuvwxyz0123456789"
            else:
                assert character.isalnum() or unicodedata.category(character)[0] == "M"


def terms(words: list[str]) -> list[str]:
    """What FTS5 makes of the tokens it is given, in order, seen through fts5vocab."""
    connection = dbapi2.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(own, content='', tokenize='ascii')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, 'instance')")
    connection.execute("INSERT INTO words(rowid, own) VALUES (1, ?)", (" ".join(words),))
    rows = connection.execute('SELECT term FROM terms ORDER BY "offset"').fetchall()
    connection.close()
    return [term for (term,) in rows]


@pytest.mark.parametrize(("query", "found", "other"), FINDS.values(), ids=FINDS.keys())
def test_query_meets_its_document_and_no_other(query: str, found: str, other: str) -> None:
    """In every script a query shares a token with what it should find and none with what it should not."""
    assert set(query_tokens(query)) & set(tokens(found))
    assert not set(query_tokens(query)) & set(tokens(other))


@pytest.mark.parametrize("spelling", ["fooBar", "FooBar", "foo_bar", "FOO_BAR", "foo-bar", "foo/bar"])
def test_spellings_of_an_identifier_meet(spelling: str) -> None:
    """An identifier gives its parts and itself joined up, whatever joins its parts."""
    assert tokens(spelling) == ["foo", "bar", "foobar"]
    assert query_tokens("foobar")[0] in tokens(spelling)


def test_a_name_within_a_path_is_kept_whole() -> None:
    """A path gives its parts, each compound name, and itself."""
    assert tokens("src/vectorIndex.py") == ["src", "vector", "index", "py", "vectorindex", "srcvectorindexpi"]


def test_scripts_without_spaces_give_characters_and_pairs() -> None:
    """A document has each character, composed and with its marks, and each pair; a query has the pairs."""
    assert tokens(unicodedata.normalize("NFD", "학교에")) == ["학", "교", "에", "학교", "교에"]
    assert query_tokens("학교에") == ["학교", "교에"]
    assert tokens("ｶﾞｽ") == ["ガ", "ス", "ガス"]
    assert tokens("ที่นี่") == ["ที่", "นี่", "ที่นี่"]


@pytest.mark.parametrize("text", ["it's", "don't", "Don’t", "I'm", "they'll", "wouldn't have", "could've"])
def test_contractions_of_stop_words_are_stop_words(text: str) -> None:
    """A contraction leaves no splinters such as "don" or "ll" among the words."""
    assert tokens(f"{text} sail") == ["sail"]


def test_stop_words_are_dropped_unless_there_is_nothing_else() -> None:
    """Documents and queries drop stop words alike, and keep them where they are all there is."""
    assert tokens("The Who played") == query_tokens("The Who played") == ["play"]
    assert tokens("The Who") == query_tokens("the who?") == ["the", "who"]


def test_names_that_look_like_verbs_are_no_stop_words() -> None:
    """Will and May can be found."""
    assert query_tokens("Will and May") == ["will", "may"]
    assert not STOP_WORDS & {"will", "may"}


def test_query_tokens_come_once_and_in_order() -> None:
    """A query asks for each token once; a document repeats what it repeats."""
    assert query_tokens("red fish blue fish") == ["red", "fish", "blue"]
    assert tokens("red fish blue fish") == ["red", "fish", "blue", "fish"]


@given(TEXTS)
@example("e" + "\u0301" * 1000)
@example("\u3099" * 1000)
@example(("\u0e38" * 20 + "\u0640") * 9)
def test_tokens_hold_only_what_fts5_leaves_alone(text: str) -> None:
    """Nothing raises, and a token is a-z, 0-9 and letters, digits and marks beyond ASCII, 1 to 64 of them."""
    assert_plain(tokens(text) + query_tokens(text))


@pytest.mark.parametrize("between", ["", " "], ids=["in a row", "one by one"])
def test_every_character_there_is_makes_plain_tokens(between: str) -> None:
    """All code points, lone surrogates too, give tokens that FTS5 leaves alone."""
    words = tokens(between.join(EVERYTHING))
    assert_plain(words)
    assert terms(words) == words


@given(TEXTS)
@example("猫が好き")
@example("ที่ภาษาไทย")
def test_a_query_asks_for_nothing_its_own_text_lacks(text: str) -> None:
    """A text asked for whole meets itself in every token."""
    assert set(query_tokens(text)) <= set(tokens(text))


@given(TEXTS)
@example("don't x")
def test_a_word_of_a_text_finds_it(text: str) -> None:
    """Every word between spaces that is no stop word finds its text by all its tokens."""
    indexed = set(tokens(text))
    for word in text.split():
        asked = set(query_tokens(word))
        assert asked <= indexed or asked <= STOP_WORDS


@given(st.text(st.characters(max_codepoint=0x24F), max_size=60))
def test_composed_and_decomposed_text_give_the_same_tokens(text: str) -> None:
    """NFC and NFD of a Latin text are one text."""
    assert tokens(unicodedata.normalize("NFC", text)) == tokens(unicodedata.normalize("NFD", text))


@given(TEXTS)
@example("Łódź 猫が ที่ภาษา हिन्दी foo_bar it's")
@settings(max_examples=50)
def test_fts5_takes_every_token_as_one_term(text: str) -> None:
    """What FTS5 has indexed, seen through fts5vocab, is exactly the tokens it was given."""
    assert terms(tokens(text)) == tokens(text)


@pytest.mark.parametrize("query", ["猫", "foo-bar", 'a" OR "b', "NEAR(x y)", "own:x*", "^x", "-x", "it's"])
def test_fts5_takes_a_quoted_token_as_a_word_and_never_as_syntax(query: str) -> None:
    """A query of tokens in quotes, joined by OR, finds the text it was made from."""
    connection = dbapi2.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(own, content='', tokenize='ascii')")
    connection.execute("INSERT INTO words(rowid, own) VALUES (7, ?)", (" ".join(tokens(query)),))
    match = " OR ".join(f'"{token}"' for token in query_tokens(query))
    found = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (match,)).fetchall()
    connection.close()
    assert found == [(7,)]


@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_time_is_linear_in_the_length(unit: str) -> None:
    """No text of 1 MiB takes longer than a few seconds of processor time; sorting marks would take a minute."""
    text = unit * (2**20 // len(unit.encode("utf-8", "surrogatepass")))
    started = time.process_time()
    tokens(text)
    assert time.process_time() - started < 10


def test_the_stemmer_is_not_imported_before_it_is_needed() -> None:
    """Importing the module costs no import of thirty languages."""
    program = "import sys, tallystick.projections.tokens; print('snowballstemmer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_stemmer_is_the_one_that_the_views_were_made_for() -> None:
    """The pinned stemmer is installed: another version needs another name, so that the views are made anew."""
    assert f"snowballstemmer {version('snowballstemmer')}" == STEMMER
    assert words_version()[1:] == (unicodedata.unidata_version, STEMMER)
