"""Which numbers are IBANs, card numbers and telephone numbers: every country, every brand, every length."""

from __future__ import annotations

import pyarrow as pa
import pytest

from glue_jobs.delivery.personal_scan import CardCount, PersonalScan, card_numbers, has_iban, has_phone
from tests.support import samples

#: An example for each country of SWIFT's IBAN registry.
IBANS = """
AD1200012030200359100100 AE070331234567890123456 AL47212110090000000235698741 AT611904300234573201
AZ21NABZ00000000137010001944 BA391290079401028494 BE68539007547034 BG80BNBG96611020345678
BH67BMAG00001299123456 BI4210000100010000332045181 BR9700360305000010009795493P1
BY13NBRB3600900000002Z00AB00 CH9300762011623852957 CR05015202001026284066 CY17002001280000001200527600
CZ6508000000192000145399 DE89370400440532013000 DJ2100010000000154000100186 DK5000400440116243
DO28BAGR00000001212453611324 EE382200221020145685 EG380019000500000000263180002 ES9121000418450200051332
FI2112345600000785 FK88SC123456789012 FO6264600001631634 FR1420041010050500013M02606
GB29NWBK60161331926819 GE29NB0000000101904917 GI75NWBK000000007099453 GL8964710001000206
GR1601101250000000012300695 GT82TRAJ01020000001210029690 HR1210010051863000160
HU42117730161111101800000000 IE29AIBK93115212345678 IL620108000000099999999 IQ98NBIQ850123456789012
IS140159260076545510730339 IT60X0542811101000000123456 JO94CBJO0010000000000131000302
KW81CBKU0000000000001234560101 KZ86125KZT5004100100 LB62099900000001001901229114
LC55HEMM000100010012001200023015 LI21088100002324013AA LT121000011101001000 LU280019400644750000
LV80BANK0000435195001 LY83002048000020100120361 MC5811222000010123456789030 MD24AG000225100013104168
ME25505000012345678951 MK07250120000058984 MN121234123456789123 MR1300020001010000123456753
MT84MALT011000012345MTLCAST001S MU17BOMM0101101030300200000MUR NI45BAPR00000013000003558124
NL91ABNA0417164300 NO9386011117947 OM810180000001299123456 PK36SCBL0000001123456702
PL61109010140000071219812874 PS92PALS000000000400123456702 PT50000201231234567890154
QA58DOHB00001234567890ABCDEFG RO49AAAA1B31007593840000 RS35260005601001611379
RU0304452522540817810538091310419 SA0380000000608010167519 SC18SSCB11010000000000001497USD
SD2129010501234001 SE4550000000058398257466 SI56263300012039086 SK3112000000198742637541
SM86U0322509800000000270100 SO211000001001000100141 ST23000100010051845310146 SV62CENR00000000000000700025
TL380080012345678910157 TN5910006035183598478831 TR330006100519786457841326 UA213223130000026007233566001
VA59001123000012345678 VG96VPVG0000012345678901 XK051212012345678906 YE15CBYE0001018861234567891234
""".split()


def scan(type_: str, values: list) -> dict[str, int]:
    """Search a column of this type."""
    search = PersonalScan(samples.things(("note", type_)))
    kind = pa.string() if type_ == "text" else pa.int64()
    block = "\r\n".join(map(str, values)).encode()
    search.add(block, pa.table({"note": pa.chunked_array([pa.array(values, kind)])}))
    return search.found()


def write_in_groups(number: str, separator: str = " ") -> str:
    return separator.join(number[start : start + 4] for start in range(0, len(number), 4))


@pytest.mark.parametrize("write", [str, str.lower, write_in_groups], ids=["plain", "lower case", "in groups"])
def test_an_iban_of_every_country_is_found(write):
    assert len(IBANS) == len({iban[:2] for iban in IBANS}) == 88
    assert [iban for iban in IBANS if not has_iban(f"to {write(iban)}, please")] == []
    assert scan("text", [write(iban) for iban in IBANS])["note: an IBAN"] == len(IBANS)


def test_a_number_with_a_sign_more_or_less_or_wrong_check_digits_is_no_iban():
    wrong = [iban[:2] + f"{(int(iban[2:4]) + 1) % 100:02}" + iban[4:] for iban in IBANS]
    for number in [*(iban[:-1] for iban in IBANS), *(f"{iban}0" for iban in IBANS), *wrong]:
        assert has_iban(number) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("DE89", False),
        ("no IBAN, then DE89370400440532013000", True),
        ("DE89 and DE89370400440532013000", True),
        ("XX89370400440532013000 DE89370400440532013000", True),
        ("xDE89370400440532013000", False),
        ("1DE89370400440532013000", False),
        ("_DE89370400440532013000", False),
        ("-DE89370400440532013000", True),
        ("DE89370400440532013000-", True),
        ("DE89370400440532013000x", False),
        ("DE89--37--04--00--44053201--30--00", True),
        ("DE89---370400440532013000", False),
    ],
)
def test_an_iban_stands_alone(text, expected):
    assert has_iban(text) is expected


def add_check_digit(start: str, length: int) -> str:
    """Return a number of this length with the right check digit of ISO/IEC 7812."""
    digits = start.ljust(length - 1, "0")
    total = sum(sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(digits[::-1]))
    return digits + str(-total % 10)


#: By first digits: the lengths of cards.
CARDS = {
    "4": (16, 19),
    **dict.fromkeys(("51", "52", "53", "54", "55"), (16, 19)),
    **dict.fromkeys(("2221", "2229", "2230", "2299", "2300", "2699", "2700", "2719", "2720"), (16, 19)),
    **dict.fromkeys(("2220", "2200", "2100", "2721", "2730", "2800"), ()),
    **dict.fromkeys(("34", "37"), (15,)),
    **dict.fromkeys(("33", "31", "32"), ()),
    **dict.fromkeys(("300", "305", "36", "38"), (14,)),
    **dict.fromkeys(("306", "309", "39"), ()),
    **dict.fromkeys(("6011", "644", "649", "65"), (16, 19)),
    **dict.fromkeys(("3528", "3529", "3530", "3589"), (16, 19)),
    **dict.fromkeys(("3527", "3590", "350"), ()),
    "62": (16, 17, 18, 19),
    **dict.fromkeys(("50", "56", "57", "58", "60", "63", "66", "67", "69"), (16, 17, 18, 19)),
    **dict.fromkeys(("59", "61", "68"), ()),
    **dict.fromkeys(("1", "7", "8", "9", "0"), ()),
}


@pytest.mark.parametrize("start", CARDS)
def test_cards_of_every_brand_have_its_lengths(start):
    numbers = {length: add_check_digit(start, length) for length in range(13, 21)}
    found = {length: card_numbers(f"paid with {number}.") for length, number in numbers.items()}
    assert {length: result for length, result in found.items() if result} == {
        length: [(False, True)] for length in CARDS[start]
    }


def test_a_card_number_with_another_check_digit_is_not_right():
    right = add_check_digit("4539", 16)
    others = [right[:-1] + digit for digit in "0123456789"]
    assert [card_numbers(number) for number in others] == [[(False, number == right)] for number in others]
    assert card_numbers(f"{right} {others[0]}, {right}")[0] == (False, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4111 1111 1111 1111", [(True, True)]),
        ("4111-1111-1111-1111", [(True, True)]),
        ("4111 - 1111 - 1111 - 1111", [(True, True)]),
        ("4111 1111-1111 1111", []),
        ("4111 1111 11111111", []),
        ("4111 1111 1111 1112", [(True, False)]),
        ("4000 0000 0000 0000 006", [(True, True)]),
        ("4000 0000 0000 0000006", [(True, True)]),
        ("3782 822463 10005", [(True, True)]),
        ("3782-822463-10005", [(True, True)]),
        ("3782 822463-10005", []),
        ("3056 930902 5904", [(True, True)]),
        ("378 2822463 10005", []),
        ("x4111111111111111", []),
        ("4111111111111111x", []),
        ("-4111111111111111", []),
        ("4111111111111111-", []),
        (".4111111111111111", []),
        ("4111111111111111.", [(False, True)]),
        ("4111111111111111 5555555555554444", [(False, True), (False, True)]),
        ("4111111111111111, 5555555555554444", [(False, True), (False, True)]),
        ("", []),
    ],
)
def test_a_card_number_is_plain_or_in_the_groups_of_a_card(text, expected):
    assert card_numbers(text) == expected


RIGHT, WRONG, GROUPED = "4111111111111111", "4111111111111112", "4111 1111 1111 1111"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({}, 0),
        ({WRONG: 19}, 0),
        ({RIGHT: 1, WRONG: 18}, 1),
        ({RIGHT: 1, WRONG: 19}, 0),
        ({RIGHT: 5, WRONG: 15}, 0),
        ({RIGHT: 6, WRONG: 14}, 6),
        ({RIGHT: 6, WRONG: 15}, 0),
        ({RIGHT: 100}, 100),
        ({GROUPED: 3, RIGHT: 1, WRONG: 1_000}, 3),
        ({GROUPED.replace("1 ", "2 ", 1): 3}, 0),
        ({f"{WRONG}, {RIGHT}": 4}, 4),
        ({f"{WRONG}, {GROUPED}": 4}, 4),
    ],
)
def test_numbers_without_gaps_count_unless_chance_explains_them(texts, found):
    """One in ten numbers has the right check digit by chance. Twenty candidates are enough to tell."""
    count = CardCount()
    for text, rows in texts.items():
        count.add(text, rows)
    assert count.found() == found


def test_columns_of_numbers_have_cards_of_fourteen_digits():
    diners = 30569309025904
    assert scan("integer", [diners, 7]) == {"note: a card number": 1}
    assert scan("integer", [10**13, 10**13 - 1, -diners, None]) == {}
    assert scan("integer", [None, None]) == scan("integer", []) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("+123456", False),
        ("+1234567", True),
        ("+12345678901234567", True),
        ("+123456789012345678", False),
        ("tel 123456", False),
        ("tel 1234567", True),
        ("tel 12345678901234567", True),
        ("tel 123456789012345678", False),
        ("hotel 1234567", False),
        ("030 12345", False),
        ("030 123456", True),
        ("0151 23456789", True),
        ("030 12345678 12", False),
        ("001 123456", False),
        ("0049 123456", True),
        ("0049 123456789012", True),
        ("00420 123456789012", True),
        ("01.02.2024", False),
        ("2024-01-05 030 123456", True),
        ("030 123456 01.02.2024", True),
        ("Room 5, then 030 12345, or 030 123456", True),
        ("x030 123456", False),
        ("030 123456x", False),
        ("030 123456/7", False),
    ],
)
def test_a_telephone_number_has_a_plausible_number_of_digits(text, expected):
    assert has_phone(text) is expected
