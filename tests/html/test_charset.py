"""The encoding of a page is the one browsers choose, except that valid UTF-8 is UTF-8."""

import codecs
import time

import numpy as np
import pytest

from pgsimhash.errors import PageError
from pgsimhash.html.parse import clean_text, clean_utf8, codec_for
from tests.refusals import because

GERMAN = "<p>Die Fähre fährt über den Fluß, täglich</p>"
JAPANESE = "<p>川べりの朝市、三十年目の春</p>"


def decode(page: bytes, charset: str | None = None) -> str:
    return clean_utf8(page, charset).decode()


TEXTS = [
    ("cp1251", "Паромщик каждое утро переправляется через залив и везёт письма и двух коз."),
    ("koi8-r", "Паромщик каждое утро переправляется через залив и везёт письма и двух коз."),
    ("cp932", "渡し守は毎朝湾を渡り、手紙とパンと二匹の山羊を運びます。"),
    ("euc_jp", "渡し守は毎朝湾を渡り、手紙とパンと二匹の山羊を運びます。"),
    ("gb18030", "摆渡人每天早晨划船穿过海湾、带着信件、面包和两只山羊。"),
    ("big5", "擺渡人每天早晨划船穿過海灣、帶著信件、麵包和兩隻山羊。"),
    ("euc-kr", "뱃사공은 매일 아침 만을 건너며 편지와 빵과 염소 두 마리를 나른다."),
    ("iso-8859-7", "Ένας βαρκάρης περνά κάθε πρωί τον κόλπο και φέρνει γράμματα και δύο κατσίκες."),
    ("cp874", "คนพายเรือข้ามอ่าวทุกเช้า เขานำจดหมาย ขนมปัง และแพะสองตัวไปด้วย"),
    ("cp1250", "Převozník každé ráno přepluje záliv, veze dopisy, chléb a dvě kozy. Hosté žasnou."),
    ("iso-8859-2", "Przewoźnik każdego ranka przepływa zatokę, przywozi listy, chleb i dwie kozy."),
    ("cp1254", "Gemici her gün körfezi geçer, mektup, ekmek ve iki keçi götürür, köpeği de gelir."),
    ("cp1255", "הסוור חוצה את המפרץ בכל בוקר ומביא מכתבים, לחם ושתי עזים."),
    ("cp1256", "يعبر الملاح الخليج كل صباح ويحمل الرسائل والخبز وعنزتين."),
]  # fmt: skip


@pytest.mark.parametrize(("codec", "text"), [*TEXTS, ("iso2022_jp", JAPANESE), ("cp1252", GERMAN)])
def test_the_header_and_the_page_itself_may_name_the_encoding(codec: str, text: str) -> None:
    assert decode(text.encode(codec), codec) == text
    page = f'<meta http-equiv="Content-Type" content="text/html; charset={codec}">{text}'
    assert decode(page.encode(codec)) == page


@pytest.mark.parametrize(("codec", "text"), [*TEXTS, ("iso2022_jp", JAPANESE)])
@pytest.mark.parametrize("label", [None, "utf-8"])
def test_an_encoding_without_a_true_label(codec: str, text: str, label: str | None) -> None:
    page = f"<html><body><h1>{text[:12]}</h1><p>{text}</p></body></html>"
    assert decode(page.encode(codec), label) == page


UTF_8, GREEK = f"<meta charset=utf-8>{GERMAN}", f"<meta charset=iso-8859-7>{GERMAN}"
ASCII = "<html><body><p>The ferry crosses every day</p>"


@pytest.mark.parametrize(("page", "label", "text"), [
    # A byte-order mark comes first, then UTF-8 that is valid.
    *((mark + GERMAN.encode(codec), "windows-1251", GERMAN) for mark, codec in (
        (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF32_LE, "utf-32-le"),
    )),
    *((GERMAN.encode(), label, GERMAN) for label in (
        "windows-1252", "shift_jis", "koi8-r", "iso-8859-1", "utf-16", "utf-7", "nonsense", "\0",
        "é" * 99,
    )),
    # A wrong label gives way to windows-1252.
    *((GERMAN.encode("cp1252"), label, GERMAN) for label in (
        None, "utf-8", "shift_jis", "no-such-charset", "base64",
    )),
    (UTF_8.encode("cp1252"), None, UTF_8),
    # The header is believed before the page.
    (GREEK.encode("cp1252"), "windows-1252", GREEK),
    # UTF-8 that is cut off in a character, and windows-1252 that was pasted into it.
    (JAPANESE[:-4].encode()[:-1], "shift_jis", JAPANESE[:-5]),
    (JAPANESE.encode() + "“Fähre”".encode("cp1252"), None, f"{JAPANESE}“Fähre”"),
    *((f"{GERMAN}“a” ".encode() + GERMAN.encode("cp1252") * 5, label, f"{GERMAN}“a” " + GERMAN * 5)
      for label in (None, "utf-8")),
    # A few broken characters do not invalidate a label.
    ((JAPANESE * 5).encode("euc_jp") + b"\xff", "euc-jp", JAPANESE * 5 + "\ufffd"),
    # So is one that was cut in half.
    *((JAPANESE.encode("euc_jp") + b"\xad", label, JAPANESE + "\ufffd")
      for label in ("euc-jp", None)),
    (JAPANESE.encode("iso2022_jp") + b"\x1b$B-", "iso-2022-jp", JAPANESE + "\ufffd"),
    # Its signs are those of browsers, also in a page that is broken.
    ((JAPANESE * 5).encode("euc_jp") + b"\xa1\xc1\xff", None, JAPANESE * 5 + "\uff5e\ufffd"),
    (b"<p>a " * 250_000 + (JAPANESE * 5).encode("shift_jis") + b"\x81 .", "shift_jis",
     "<p>a " * 250_000 + JAPANESE * 5 + "\ufffd ."),
    # Nor do they hide an encoding that nobody names; an encoding in which more is broken is wrong.
    ((JAPANESE * 9).encode("euc_jp") + b"\xff", None, JAPANESE * 9 + "\ufffd"),
    ("“Moby”—a “whale”… ".encode("cp1252") * 9, None, "“Moby”—a “whale”… " * 9),
    # UTF-16 without a mark shows in its NUL bytes.
    (ASCII.encode("utf-16-le"), None, ASCII), (ASCII.encode("utf-16-be"), "utf-16", ASCII),
    # Control characters are dropped.
    (b"<p>The \0ferry\0 crosses</p>", None, "<p>The ferry crosses</p>"),
])  # fmt: skip
def test_pages_with_marks_and_wrong_labels(page: bytes, label: str | None, text: str) -> None:
    assert decode(page, label) == text
    # C1 control characters are windows-1252 with a wrong label.
    assert clean_text("a\0b\x01c\x85d\ud800e\ufffef\tg\r\nh\x9d") == "abc…def\tg\r\nh"


@pytest.mark.parametrize(("label", "codec"), [
    ("ISO-8859-1", "cp1252"), ("latin1", "cp1252"), ("us-ascii", "cp1252"),
    ("iso-8859-9", "cp1254"), ("gb2312", "gb18030"), ("Shift_JIS", "cp932"), ("x-sjis", "cp932"),
    ("ks_c_5601-1987", "cp949"), ("big5", "big5hkscs"), ("windows-31j", "cp932"),
    ("gbk", "gb18030"), ("x-mac-ukrainian", "mac-cyrillic"), ("latin_1", "cp1252"),
    ("cp949", "cp949"), ("iso-2022-kr", None), (' "UTF8" ', "utf-8"), ("utf-7", None),
    ("unicode_escape", None), ("idna", None), ("hex", None), ("x" * 1000, None), ("utf\0008", None),
    ("é", None), ("", None), (None, None),
])  # fmt: skip
def test_labels_mean_what_they_mean_in_browsers(label: str | None, codec: str | None) -> None:
    assert codec_for(label) == codec


@pytest.mark.parametrize(("start", "what"), [
    (b"%PDF-1.7\n", "PDF"), (b"\x89PNG\r\n\x1a\n", "PNG"), (b"GIF89a", "GIF"),
    (b"\xff\xd8\xff\xe0", "JPEG"), (b"PK\x03\x04", "zip"), (b"\x1f\x8b\x08", "gzip"),
    (b"\n\n%PDF-1.4", "PDF"), (bytes(range(1, 9)) * 100, "binary"), (b"\0" * 1000, "binary"),
])  # fmt: skip
def test_a_binary_format_is_refused(start: bytes, what: str) -> None:
    with pytest.raises(PageError, match=what):
        decode(start + b" The ferry crosses every day")


@pytest.mark.parametrize("head", [
    b"<metacharset=" * 1000, b"<?" + b"encoding='" * 1000, b"<meta charset" * 1000,
    b"<meta " * 2000, b"<" * 9000,
])  # fmt: skip
def test_broken_labels_take_no_time(head: bytes) -> None:
    before = time.process_time()
    assert decode(head + GERMAN.encode("cp1252")).endswith(GERMAN)
    assert time.process_time() - before < 1


@pytest.mark.parametrize("label", [
    "<?xml version='1.0' encoding='koi8-r'?>",
    '\n<?xml version="1.0" encoding="koi8-r" standalone="yes"?>',
    "<meta name=a content=b><meta charset=koi8-r>",
    '< META http-equiv=Content-Type content="text/html; charset = koi8-r" />',
    "<meta <meta charset='koi8-r'>",
    "<meta http-equiv=Inhaltstyp content='text/html; charset=koi8-r'>",
    f"<meta name=description content='{'charset ' * 20}'><meta charset=koi8-r />",
])  # fmt: skip
def test_a_page_names_its_encoding_in_many_ways(label: str) -> None:
    page = f"{label}<p>Паром ходит каждый день</p>"
    assert decode(page.encode("koi8-r")) == page


def test_a_label_that_is_not_ascii_names_no_encoding() -> None:
    """Nor does it warn, as Python 3.15 does."""
    page = f'<meta charset="à"><p>{GERMAN}</p>'
    assert decode(page.encode("cp1252")) == page


@pytest.mark.parametrize("label", [None, "shift_jis", "iso-2022-jp", "gb2312", "utf-16", "koi8-r"])
def test_ascii_is_ascii_for_every_label_without_escape_sequences(label: str | None) -> None:
    ascii_page = "".join(map(chr, [9, 10, 13, *range(0x20, 0x7F)]))
    assert decode(ascii_page.encode(), label) == ascii_page
    codec = codec_for(label) or "ascii"
    if codec != "utf-16-le":
        assert ascii_page.encode().decode(codec) == ascii_page
    # An escape sequence of ISO-2022-JP, in bytes of ASCII.
    assert decode(JAPANESE.encode("iso-2022-jp"), "iso-2022-jp") == JAPANESE


@pytest.mark.parametrize("label", ["euc-jp", "big5", "shift_jis", "gb18030"])
def test_only_a_label_of_which_nothing_is_true_is_given_up_early(label: str) -> None:
    junk = np.random.default_rng(3).integers(0x20, 0x100, 1000, dtype=np.uint8).tobytes() * 1000
    took = {}
    for name in (None, label):
        tries = []
        for _ in range(3):
            start = time.process_time()
            text = decode(junk, name)
            tries.append(time.process_time() - start)
        took[name] = min(tries)
        assert text == decode(junk)
    assert took[label] < 2 * took[None]


def test_a_label_of_which_nearly_all_is_true_holds_to_the_end() -> None:
    text = JAPANESE * 20_000
    body = text.encode("euc_jp")
    assert decode(b"\xff" + body + b"\xff", "euc-jp") == f"\ufffd{text}\ufffd"


@pytest.mark.parametrize("label", ["euc-jp", "big5", "koi8-r", "iso-8859-10", "utf-8", "x-unknown"])
@pytest.mark.parametrize("lowest", [0x20, 0x80])
def test_large_noise_is_binary_data_under_every_label(label: str, lowest: int) -> None:
    noise = np.random.default_rng(3).integers(lowest, 0x100, 5_000_000, dtype=np.uint8).tobytes()
    started = time.process_time()
    with pytest.raises(PageError, check=because("not_html")):
        decode(f"<meta charset={label}><p>".encode() + noise)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("codec", ["gb18030", "big5hkscs", "cp932", "koi8-r"])
def test_characters_as_frequent_as_in_a_language_are_no_noise(codec: str) -> None:
    first, last = (0x410, 0x44F) if codec == "koi8-r" else (0x4E00, 0x9FA5)
    letters = [chr(n) for n in range(first, last) if chr(n).encode(codec, "ignore")]
    shares = 1 / (3 + np.arange(len(letters)))
    text = "".join(np.random.default_rng(3).choice(letters, 1_100_000, p=shares / shares.sum()))
    assert decode(text.encode(codec), codec) == text
