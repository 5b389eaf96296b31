"""The scan of the finished file finds what looks like personal data in any usual spelling, and nothing
else.
"""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from config.exports.contract import Contract, decimal_type
from glue_jobs.delivery.personal_scan import PersonalScan, require_patterns
from glue_jobs.errors import BadInput
from tests.support import samples

PATTERN = '[[personal_pattern]]\nname = "staff_number"\npattern = "P[0-9]{6}"\n'


def contract(type_: str = "text", more: str = "", patterns: str = "") -> Contract:
    return samples.things(("id", "integer"), ("note", type_, "nullable = true", more), more=patterns)


def scan(of: Contract, *blocks: list) -> dict[str, int]:
    search = PersonalScan(of)
    size = decimal_type(of.columns[1].type)
    kind = pa.decimal128(*size) if size else {"integer": pa.int64()}.get(of.columns[1].type, pa.string())
    for values in blocks:
        ids = pa.chunked_array([pa.array(range(len(values)), pa.int64())])
        table = pa.table({"id": ids, "note": pa.chunked_array([pa.array(values, kind)])})
        search.add("\r\n".join(map(str, values)).encode(), table)
    return search.found()


EMAILS = """
    info@müller.de|jörg@exämple.de|инфо@пример.рф|kontakt@müller-beispiel.de|kim＠example.com|Ｋim@ｅxample．com|a@b.co
    x@उदाहरण.भारत|mailto:kim%40example.com|"kim doe"@example.com|kim@xn--bcher-kva.example|kim.o'hara@example.com
    用户@例子.中国|kim@例え。テスト|Write to Kim.Doe+x@mail.example.co.uk!|(kim@example.com)|kim@example.com,ada@example.com
"""
PHONES = """
    0151 23456789|tel 0049 151 23456789|0049 151 23456789|(030) 123456|030/123456|030 123456|030-1234567|06 12 34 56 78
    06.12.34.56.78|06-12-34-56-78|+491512345678|'+49 30 901820|call +1 (555) 010-9999|020 7946 0958|07911 123456
    Tel.: 0301234567|Telefon: 1234567|handy 015123456789|(212) 555-0123|212-555-0123|347 123 4567|612 34 56 78|91 123 45 67
    Mobil: 0171-1234567|Fax (089) 12 34 56|０１５１ ２３４５６７８９|00 44 20 7946 0958|tél. 0612345678|+49 (0)151 23456789
    0151/23456789|0171 - 1234567|+33 6 12 34 56 78|ring 0151 23456789 at night|＋49 151 23456789|kom. 01.02.2024, 0151 23456789
    1-212-555-0123|1 212 555 0123|call 1.212.555.0123|٠١٥١ ٢٣٤٥٦٧٨٩|०१५१ २३४५६७८९|+۴۹ ۱۵۱ ۲۳۴۵۶۷۸۹|0151–23456789|0151\t23456789
"""
IBANS = """
    DE89370400440532013000|DE89 3704 0044 0532 0130 00|iban:GB29NWBK60161331926819|FR14 2004 1010 0505 0001 3M02 606
    NL91ABNA0417164300|pl61109010140000071219812874|IBAN DE89 3704 0044 0532 0130 00 Danke|ES9121000418450200051332
    IT60X0542811101000000123456|DE89–3704–0044–0532–0130–00|DE89  3704  0044  0532  0130  00|DE89\t3704\t0044\t0532\t0130\t00
    DE89.3704.0044.0532.0130.00|DE٨٩٣٧٠٤٠٠٤٤٠٥٣٢٠١٣٠٠٠|AT611904300234573201|CH9300762011623852957
"""
CARDS = """
    4111 1111 1111 1111|4111111111111111|5500-0000-0000-0004|378282246310005|3782 822463 10005|6011111111111117
    paid with 5555555555554444.|3530111333300000|30569309025904|2223003122003222|6200000000000005
    ４１１１ １１１１ １１１１ １１１１|٤١١١ ١١١١ ١١١١ ١١١١|4111–1111–1111–1111|4111\t1111\t1111\t1111|4111 - 1111 - 1111 - 1111
"""
FOUND = {"an e-mail address": EMAILS, "a telephone number": PHONES, "an IBAN": IBANS, "a card number": CARDS}
HARMLESS = """
    a @ b|@home|price @ 3.50|lodash@4.17.21|user@host|@user:matrix|x@|2024-01-05|01.02.2024|01-02-2024|05/06/2024
    01-02-2024 10:00|2024-01-05 12:30:00|+10000-01-01|+294247-01-09T04:00:54|-0001-01-01|01.02.2024 12:30|09:30 10:45|1+1
    +5|0.25 0.75|100 000 000|1 234 567 890|12 345 678|612 345 678|0000123456|0012345678|00401234567890|4006381333931
    978-3-16-148410-0|0-306-40615-2|SO-100042|536365|85123A|0402-0805|0603|v1.2.3.4|192.168.0.1|12:34:56|2026-W10|0151|030
    room 012 345|0402-1234-567|12.345.678,90|0,15 0,20|20240105 120000|1000-2000-3000|AB12 CD34|48.137154, 11.576124
    0.4111111111111111|5e-10|order 302-1234567-1234567|12345678-1234-1234-1234-123456789012|01/02/03|0800 - 1200
    08:00-12:00 01.02.2024|hotel 1234|fax|phone 12 cm|model tel-5|telex 12|DE89370400440532013001|DE8937040044053201300
    XX89370400440532013000|DE12 Some words that go on|GB29 NWBK 6016 1331 9268 18|ab12cdefghijklmnop|4111 1111 1111 1112
    4111111111111112|1111222233334444|1234567890123456|0000000000000000|550e8400-e29b-41d4-a716-446655440000|1709425600000000
    4111.1111.1111.1111|9876543210987654|411111111111111|41 11 11 11 11 11 11 11
"""


#: Spellings with spaces and hyphens that look like the usual ones, and with signs that nobody sees.
LOOK_ALIKES = {
    "kim@\u200bexample.com": "an e-mail address",
    "k\u00adim@exam\u00adple.com": "an e-mail address",
    "+49\u2009151\u200923456789": "a telephone number",
    "+49\u2007151\u200723456789": "a telephone number",
    "+49\u2011151\u201123456789": "a telephone number",
    "030\u20111234567": "a telephone number",
    "0151\u200b 23456789": "a telephone number",
    "\u202a+49 151 23456789\u202c": "a telephone number",
    "DE89\u200937040044\u20090532013000": "an IBAN",
    "DE8937\u200b0400440532013000": "an IBAN",
    "4111\u202f1111\u202f1111\u202f1111": "a card number",
    "4111\u20111111\u20111111\u20111111": "a card number",
    "41111111\u200b11111111": "a card number",
}


def listed(text: str) -> list[str]:
    return [value.strip() for line in text.strip().splitlines() for value in line.split("|")]


@pytest.mark.parametrize(("what", "text"), [(kind, text) for kind in FOUND for text in listed(FOUND[kind])])
def test_personal_values_are_found_in_every_usual_spelling(what, text):
    found = scan(contract(), [text, "harmless", None, text])
    assert found[f"note: {what}"] == 2
    assert (
        len(found) == 1 or what == "an IBAN"
    )  # the digits of some IBANs are grouped like a telephone number's


@pytest.mark.parametrize(("text", "what"), LOOK_ALIKES.items())
@pytest.mark.parametrize("beside", ["harmless", "Ｆｕｌｌ－ｗｉｄｔｈ"])
def test_personal_values_are_found_in_spellings_that_look_alike(text, what, beside):
    assert f"note: {what}" in scan(contract(), [text, beside])


@pytest.mark.parametrize("text", listed(HARMLESS))
def test_dates_amounts_and_numbers_of_things_are_not_personal(text):
    assert scan(contract(), [text, None]) == {}


def test_blocks_add_up_and_values_that_recur_count_as_often():
    recurring = ["a longer text"] * 3000 + ["kim@example.com"] * 7
    differing = (
        [f"text number {number}" for number in range(3000)] + ["0151 23456789"] * 2 + ["kim@example.com"]
    )
    assert scan(contract(), recurring, differing, ["x"], []) == {
        "note: an e-mail address": 8,
        "note: a telephone number": 2,
    }


def test_a_column_of_numbers_that_are_cards_by_chance_only_is_no_column_of_cards():
    """One in ten numbers has the right check digit. Grouped numbers are cards, whatever the others are."""
    dice = random.Random(1)
    orders = [str(dice.randrange(4 * 10**15, 5 * 10**15)) for _ in range(5000)]
    assert scan(contract(), orders[:2500], orders[2500:]) == {}
    assert scan(contract(), [*orders, "4111 1111 1111 1111"]) == {"note: a card number": 1}
    cards = ["4111111111111111", "5555555555554444"] * 50
    assert scan(contract(), orders[:20] + cards)["note: a card number"] >= 100


def test_card_numbers_are_found_in_a_column_of_integers():
    assert scan(contract("integer"), [4111111111111111, 7, None]) == {"note: a card number": 1}
    assert scan(contract("integer"), [1709425600000000, 4915123456789, 7]) == {}
    assert (
        scan(
            contract("integer", 'personal = { treatment = "keep", reason = "r", may_contain = ["card"] }'),
            [4111111111111111],
        )
        == {}
    )


@pytest.mark.parametrize("type_", ["decimal(16,0)", "decimal(38,20)", "decimal(38,0)", "decimal(18,2)"])
def test_card_numbers_are_found_in_a_column_of_decimals(type_):
    assert scan(contract(type_), [Decimal(4111111111111111), Decimal(7), None]) == {"note: a card number": 1}
    assert scan(contract(type_), [Decimal(1709425600000000), Decimal(7)]) == {}


def test_a_decimal_with_decimal_places_is_no_card_number():
    assert scan(contract("decimal(18,2)"), [Decimal("4111111111111111.10")]) == {}


def test_a_column_that_is_kept_may_have_the_kinds_of_values_that_the_contract_names():
    keep = 'personal = { treatment = "keep", reason = "r"'
    values = ["kim@example.com", "0151 23456789", "P123456"]
    everything = {
        "note: an e-mail address": 1,
        "note: a telephone number": 1,
        "note: what the pattern staff_number describes": 1,
    }
    assert scan(contract(more=f"{keep} }}", patterns=PATTERN), values) == everything
    some = contract(more=f'{keep}, may_contain = ["email", "staff_number"] }}', patterns=PATTERN)
    assert scan(some, values) == {"note: a telephone number": 1}
    hashed = contract(more='personal = { treatment = "hash", kind = "id" }', patterns=PATTERN)
    assert scan(hashed, values) == {}
    masked = contract(more='personal = { treatment = "mask", visible = 8 }')
    assert scan(masked, ["***0151 23456789"]) == {"note: a telephone number": 1}


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("email", "an e-mail address"),
        ("phone", "a telephone number"),
        ("iban", "an IBAN"),
        ("card", "a card number"),
        ("staff_number", "what the pattern staff_number describes"),
    ],
)
def test_each_kind_of_value_is_excused_by_its_own_name_only(kind, what):
    values = ["kim@example.com", "+49 151 23456789", "GB29NWBK60161331926819", "4111111111111111", "P123456"]
    keep = f'personal = {{ treatment = "keep", reason = "r", may_contain = ["{kind}"] }}'
    found = scan(contract(more=keep, patterns=PATTERN), values)
    everything = scan(contract(patterns=PATTERN), values)
    assert len(everything) == len(values)
    assert found == {name: rows for name, rows in everything.items() if name != f"note: {what}"}


def test_a_pattern_of_ones_own_is_searched_in_every_text():
    assert scan(contract(patterns=PATTERN), ["P123456", "x P999999 y", "P12345", None]) == {
        "note: what the pattern staff_number describes": 2
    }


def test_a_pattern_that_re2_cannot_read_stops_the_run_before_it_begins():
    require_patterns(contract(patterns=PATTERN))
    other = contract(
        patterns=PATTERN.replace("P[0-9]{6}", "P[0-9]{6000}") + PATTERN.replace("staff", "other")
    )
    with pytest.raises(BadInput) as refused:
        require_patterns(other)
    assert (refused.value.code, refused.value.what) == (
        "EXP-CONTRACT",
        "contract things: not a regular expression in RE2's syntax: personal_pattern staff_number",
    )
    assert refused.value.remedy == (
        "Correct the pattern. The syntax: https://github.com/google/re2/wiki/Syntax"
    )
    wrong = PATTERN.replace("P[0-9]{6}", "P[0-9]{6000}")
    both = contract(patterns=wrong + wrong.replace("staff", "other"))
    with pytest.raises(BadInput, match="personal_pattern staff_number, other_number"):
        require_patterns(both)


def test_a_scan_begins_with_nothing_that_was_found():
    assert PersonalScan(contract()).found() == {}
    for state in ({"rows": {"note: an IBAN": 1}}, {"cards": {}}):
        with pytest.raises(TypeError):
            PersonalScan(contract(), **state)
