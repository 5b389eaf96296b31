"""Search the finished file for values that look like personal data, in columns that should have none.

Arrow's regular expressions (RE2) find candidates in a whole column at once. Python looks at the candidates
only: it counts digits, knows dates, and computes check digits. The search knows e-mail addresses, telephone
numbers, IBANs, card numbers, and the patterns that a contract adds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from config.exports.contract import Column, Contract
from config.forms import CARD, EMAIL, IBAN, PHONE
from glue_jobs.errors import BadInput

#: Texts of a block that are compared to learn whether texts of the column recur.
_SAMPLE: Final = 1_000
#: Every telephone number, IBAN and card number has seven digits, with at most six other signs between two.
_DIGITS: Final = "[0-9]" + 6 * "[^0-9]{0,6}[0-9]"
#: Signs that nobody sees: soft hyphens, spaces without width, marks of direction.
_INVISIBLE: Final = (
    "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202c\u2060\u2066\u2067\u2068\u2069\ufeff"
)
#: Spaces and hyphens that look like the usual ones. NFKC makes some of them the usual ones.
_LOOK_ALIKE: Final = "\u2002\u2003\u2005\u2007\u2008\u2009\u200a\u202f\u3000\u2010\u2011"
#: Signs that separate groups of digits as a hyphen does: other hyphens, dashes, the minus sign.
_DASHES: Final = "\u2010\u2012\u2013\u2014\u2015\u2212"
#: Code points of the zeros of other scripts, such as Arabic (Unicode's category Nd). The other digits follow.
_ZEROS: Final = (
    "0660 06F0 07C0 0966 09E6 0A66 0AE6 0B66 0BE6 0C66 0CE6 0D66 0DE6 0E50 0ED0 0F20 1040 1090 17E0 1810 "
    "1946 19D0 1A80 1A90 1B50 1BB0 1C40 1C50 A620 A8D0 A900 A9D0 A9F0 AA50 ABF0"
)
_ZERO_CODES: Final = [int(zero, 16) for zero in _ZEROS.split()]
#: By value: the digits with this value, of all these scripts.
_DIGITS_OF_SCRIPTS: Final = [[chr(zero + value) for zero in _ZERO_CODES] for value in range(10)]
#: What the UTF-8 form of these digits begins with.
_DIGIT_BEGINNINGS: Final = sorted({digit.encode()[:-1] for digits in _DIGITS_OF_SCRIPTS for digit in digits})
#: What is in a block with spellings that are made plain before the search. Full-width letters, digits and
#: signs, which mail programs and telephones accept, begin with one of three pairs of bytes in UTF-8.
_UNUSUAL: Final = (
    b"\t",
    *(b"\xef\xbc", b"\xef\xbd", b"\xef\xb9"),
    *(sign.encode() for sign in _INVISIBLE + _LOOK_ALIKE + _DASHES),
    *_DIGIT_BEGINNINGS,
)
#: No value that the search knows is shorter, in bytes: `a@b.co`.
_SHORTEST: Final = 6
#: Of numbers with a card's length and first digits, one in ten has the right check digit by chance. Above
#: this share of a column's candidates, chance is no explanation.
_BY_CHANCE: Final = 0.3
#: With fewer candidates, each number with the right check digit counts.
_ENOUGH: Final = 20
#: Numbers below this have fewer digits than a card number.
_SMALLEST_CARD: Final = 10**13

_WORD: Final = r"\pL\pN_"  # RE2's \w is ASCII; Python's isn't
_EMAIL: Final = (
    r"[^\s@,;:<>()\[\]]+(?:@|%40)"
    r"(?:[\pL\pN\pM_-]+[.\x{3002}\x{ff61}])+(?:\pL[\pL\pM]+|xn--[A-Za-z0-9-]+)"
)
_GAP: Final = r"[ \x{a0}\x{2009}\x{202f}]"
_INTERNATIONAL: Final = r"\+[ (]*[0-9](?:[ ()./\x{a0}\x{202f}\x{2011}\x{2013}-]{0,3}[0-9]){6,}"
_TELEPHONE_WORDS: Final = (
    r"(?:t[eé]l|telephone|t[eé]l[eé]phone|telefon|tel[eé]fono|telefoon|telefonnummer|phone|fon|ph|call|mobile?|mobil|"
    r"m[oó]vil|handy|cell|cellulare|celular|portable|kom[oó]rka|whatsapp|fax|faks|rufnummer)"
)
#: National numbers: with a trunk prefix or with the grouping of a country, never plain digits.
_NATIONAL: Final = (
    # 0049 151 23456789, 00 44 20 7946 0958
    rf"00{_GAP}?[1-9][0-9]{{0,2}}(?:{_GAP}?[(]0[)])?(?:{_GAP}|[/-])[0-9](?:[ /\x{{a0}}-]?[0-9]){{5,11}}",
    # 0151 23456789, 030/123456, 030-1234567, 020 7946 0958, 0 151 234567
    rf"0{_GAP}?[1-9][0-9]{{0,4}}{_GAP}?(?:{_GAP}|[/-]){_GAP}?[0-9]{{2,8}}(?:{_GAP}[0-9]{{2,5}}){{0,3}}",
    # (030) 123456
    rf"\(0[1-9][0-9]{{0,4}}\){_GAP}?[0-9]{{2,8}}(?:[ \x{{a0}}-][0-9]{{2,5}}){{0,3}}",
    # 06 12 34 56 78, 06.12.34.56.78
    rf"0[1-9](?:{_GAP}[0-9]{{2}}){{4}}",
    r"0[1-9](?:\.[0-9]{2}){4}",
    r"0[1-9](?:-[0-9]{2}){4}",
    # (212) 555-0123, 212-555-0123, 212.555.0123
    rf"\([2-9][0-9]{{2}}\){_GAP}?[0-9]{{3}}[ .-][0-9]{{4}}",
    r"[2-9][0-9]{2}(?:-[0-9]{3}-|\.[0-9]{3}\.)[0-9]{4}",
    # 1-212-555-0123, 1 212 555 0123
    rf"1(?:{_GAP}|[.-])[2-9][0-9]{{2}}(?:{_GAP}|[.-])[0-9]{{3}}(?:{_GAP}|[.-])[0-9]{{4}}",
    # 347 123 4567, 612 34 56 78, 91 123 45 67
    rf"3[0-9]{{2}}{_GAP}[0-9]{{3}}{_GAP}[0-9]{{4}}",
    rf"[5-9][0-9]{{2}}(?:{_GAP}[0-9]{{2}}){{3}}",
    rf"[1-9][0-9]{_GAP}[0-9]{{3}}{_GAP}[0-9]{{2}}{_GAP}[0-9]{{2}}",
)
_NAMED_NUMBER: Final = (
    rf"(?:^|[^{_WORD}])(?i:{_TELEPHONE_WORDS})[^{_WORD}+]{{0,4}}(?:(?i:nr|no|number|nummer|num[eé]ro|numero)[^{_WORD}+]{{0,3}})?"
    r"[(0-9](?:[ ()./\x{a0}-]{0,2}[0-9]){5,}"
)
_PHONE: Final = (
    rf"{_INTERNATIONAL}|{_NAMED_NUMBER}|(?:^|[^{_WORD}.,:/+-])(?:{'|'.join(_NATIONAL)})(?:$|[^{_WORD}/-])"
)
_IBAN_START: Final = r"[A-Za-z]{2}[0-9]{2}"
_IBAN: Final = rf"(?:^|[^{_WORD}]){_IBAN_START}(?:[ \x{{a0}}./-]{{0,2}}[0-9A-Za-z]){{11,30}}"
_CARD: Final = rf"(?:^|[^{_WORD}.,-])[2-6](?:[ \x{{a0}}-]{{0,3}}[0-9]){{12,18}}(?:$|[^{_WORD}-])"

#: Countries by the length of a whole IBAN (SWIFT's IBAN registry).
_IBAN_COUNTRIES: Final = {
    15: "NO",
    16: "BE",
    18: "DK FO FI GL NL SD FK",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
_IBAN_LENGTHS: Final = {
    country: length for length, countries in _IBAN_COUNTRIES.items() for country in countries.split()
}
#: First digits and lengths of cards: Visa, Mastercard, American Express, Diners, Discover, JCB, UnionPay,
#: Maestro.
_CARDS: Final = re.compile(
    r"4[0-9]{15}(?:[0-9]{3})?|(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)[0-9]*|3[47][0-9]{13}|30[0-5][0-9]{11}|3[68][0-9]{12}"
    r"|(?:6011|64[4-9]|65|35(?:2[89]|[3-8]))[0-9]*|62[0-9]{14,17}|(?:50|5[6-8]|6[03-79])[0-9]{14,17}"
)
_GROUPED: Final = re.compile(
    r"[0-9]{4}([ \xa0-]{1,3})[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1?[0-9]{3})?"
    r"|[0-9]{4}([ \xa0-]{1,3})[0-9]{6}\2[0-9]{4,5}"
)
_DATE: Final = re.compile(
    r"[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}(?![0-9])"
    r"|(?<![0-9])[0-9]{1,2}([./ -])[0-9]{1,2}\1(?:19|20)[0-9]{2}(?![0-9])"
)


def _translate_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern of RE2 as Python writes it."""
    for theirs, ours in (
        (r"\pL\pN_", r"\w"),
        (r"\x{a0}", "\xa0"),
        (r"\x{2009}", "\u2009"),
        (r"\x{202f}", "\u202f"),
        (r"\x{2011}", "\u2011"),
        (r"\x{2013}", "\u2013"),
    ):
        pattern = pattern.replace(theirs, ours)
    return re.compile(pattern)


#: National numbers with no part of a word or of another number beside them.
_NATIONAL_ALONE: Final = [rf"(?<![{_WORD}.,:/+-])(?:{national})(?![{_WORD}/-])" for national in _NATIONAL]
_PHONES: Final = tuple(map(_translate_pattern, (_INTERNATIONAL, _NAMED_NUMBER, *_NATIONAL_ALONE)))


def has_phone(text: str) -> bool:
    """Return whether a telephone number is left when dates are taken out of the text."""
    text = _DATE.sub(" | ", text)
    for pattern in _PHONES:
        for match in pattern.finditer(text):
            digits = sum(map(str.isdigit, match[0]))
            if 7 <= digits <= 17 and (pattern in _PHONES[:2] or _is_long_enough(match[0])):
                return True
    return False


def _is_long_enough(number: str) -> bool:
    """Return whether a national number has a plausible number of digits: with its trunk prefix, nine to
    twelve.
    """
    digits = "".join(filter(str.isdigit, number))
    return 10 <= len(digits) <= 17 if digits.startswith("00") else 9 <= len(digits) <= 12


def has_iban(text: str) -> bool:
    for match in re.finditer(rf"(?<!\w){_IBAN_START}", text):
        length = _IBAN_LENGTHS.get(match[0][:2].upper())
        if length is None:
            continue
        pattern = rf"(?:[ \xa0./-]{{0,2}}[0-9A-Za-z]){{{length}}}(?![0-9A-Za-z])"
        whole = re.match(pattern, text[match.start() :])
        if whole and _is_divisible(re.sub(r"[^0-9A-Za-z]", "", whole[0]).upper()):
            return True
    return False


def _is_divisible(iban: str) -> bool:
    """Return whether the check digits of ISO 7064, MOD 97-10, are right."""
    return int("".join(str(int(sign, 36)) for sign in iban[4:] + iban[:4])) % 97 == 1


def card_numbers(text: str) -> list[tuple[bool, bool]]:
    """Return whether each number that begins like a card is grouped, and whether its check digit is right."""
    numbers = []
    for match in re.finditer(r"(?<![\w.,-])[2-6](?:[ \xa0-]{0,3}[0-9]){12,18}(?![\w-])", text):
        digits = re.sub(r"[^0-9]", "", match[0])
        is_grouped = not match[0].isdigit()
        if (
            (not is_grouped or _GROUPED.fullmatch(match[0]))
            and len(digits) >= 14
            and _has_card_prefix(digits)
        ):
            numbers.append((is_grouped, _passes_luhn(digits)))
    return numbers


def _has_card_prefix(digits: str) -> bool:
    is_open = digits.startswith(("2", "51", "52", "53", "54", "55", "6011", "64", "65", "35"))
    return _CARDS.fullmatch(digits) is not None and (not is_open or len(digits) in (16, 19))


def _passes_luhn(digits: str) -> bool:
    """Return whether the check digit of ISO/IEC 7812 is right."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


@attrs.frozen
class Detector:
    """`kind` is its name in `may_contain`, `what` what it finds.

    All matches contain one of the `markers`, if there are any.
    """

    kind: str
    what: str
    pattern: str
    markers: tuple[bytes, ...] = ()
    #: Whether a candidate is one; without it, every candidate is.
    check: Callable[[str], bool] | None = None


_DETECTORS: Final = (
    Detector(EMAIL, "an e-mail address", _EMAIL, (b"@", b"%40", b"\xef\xbc\xa0", b"\xef\xb9\xab")),
    Detector(PHONE, "a telephone number", _PHONE, check=has_phone),
    Detector(IBAN, "an IBAN", _IBAN, check=has_iban),
)
_CARD_TITLE: Final = "a card number"


@attrs.define
class CardCount:
    """`candidates` are numbers without gaps that look like cards, `right` those of them with the right check
    digit.
    """

    candidates: int = 0
    right: int = 0
    grouped: int = 0

    def add(self, text: str, rows: int) -> None:
        numbers = card_numbers(text)
        if any(is_right for is_grouped, is_right in numbers if is_grouped):
            self.grouped += rows
        elif plain := [is_right for is_grouped, is_right in numbers if not is_grouped]:
            self.candidates += rows
            self.right += rows * any(plain)

    def found(self) -> int:
        by_chance = self.candidates >= _ENOUGH and self.right < _BY_CHANCE * self.candidates
        return self.grouped + (0 if by_chance else self.right)


@attrs.define
class PersonalScan:
    """Counts, over the blocks of a file, the rows of each column that have what looks like personal data."""

    contract: Contract
    _rows: Counter[str] = attrs.field(factory=Counter, init=False)
    _cards: dict[str, CardCount] = attrs.field(factory=dict, init=False)

    def add(self, block: bytes, table: pa.Table) -> None:
        """Search a block. `table` has its columns."""
        is_unusual = _has_any(block, _UNUSUAL)
        possible = tuple(
            detector for detector in _DETECTORS if not detector.markers or _has_any(block, detector.markers)
        )
        for column in self.contract.columns:
            if column.type == "text" and not column.is_hashed:
                values = _normalise_texts(table[column.name]) if is_unusual else table[column.name]
                self._search_texts(column, values, possible)
            elif column.numeric and CARD not in _list_excused(column):
                self._search_numbers(column, table[column.name])

    def found(self) -> dict[str, int]:
        """Return the number of rows for each column and kind of value."""
        cards = {f"{name}: {_CARD_TITLE}": count.found() for name, count in self._cards.items()}
        findings = {**self._rows, **cards}
        return {finding: rows for finding, rows in findings.items() if rows}

    def _search_texts(self, column: Column, values: pa.ChunkedArray, possible: tuple[Detector, ...]) -> None:
        excused = _list_excused(column)
        for pattern in self.contract.personal_pattern:
            if pattern.name not in excused:
                hits = pc.sum(pc.match_substring_regex(values, pattern.pattern)).as_py() or 0
                self._rows[f"{column.name}: what the pattern {pattern.name} describes"] += hits
        texts = _count_texts(values)
        numbers = texts.filter(pc.match_substring_regex(texts["values"], _DIGITS))
        for detector in possible:
            searched = numbers if detector.check else texts
            if detector.kind not in excused:
                self._rows[f"{column.name}: {detector.what}"] += _count(searched, detector)
        if CARD not in excused:
            self._count_cards(column, numbers)

    def _search_numbers(self, column: Column, values: pa.ChunkedArray) -> None:
        greatest = pc.max(values).as_py()
        if greatest is not None and greatest >= _SMALLEST_CARD:
            smallest = pa.scalar(type(greatest)(_SMALLEST_CARD), values.type)
            large = values.filter(pc.greater_equal(values, smallest))
            texts = pc.replace_substring_regex(large.cast(pa.string()), r"\.0+$", "")
            self._count_cards(column, _count_texts(texts.filter(pc.invert(pc.match_substring(texts, ".")))))

    def _count_cards(self, column: Column, texts: pa.Table) -> None:
        candidates = texts.filter(pc.match_substring_regex(texts["values"], _CARD))
        count = self._cards.setdefault(column.name, CardCount())
        for text, rows in zip(
            candidates["values"].to_pylist(), candidates["counts"].to_pylist(), strict=True
        ):
            count.add(text, rows)


def _has_any(block: bytes, signs: tuple[bytes, ...]) -> bool:
    # A search for one byte takes a fraction of the time of a search for several.
    return any(sign[:1] in block and sign in block for sign in signs)


def _normalise_texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the texts with the usual letters, digits, spaces and hyphens, and without signs that nobody
    sees.
    """
    plain = pc.replace_substring_regex(pc.utf8_normalize(values, "NFKC"), f"[{_INVISIBLE}]", "")
    plain = pc.replace_substring_regex(plain, f"[{_DASHES}]", "-")
    plain = pc.replace_substring_regex(plain, r"\t+", " ")
    for value, digits in enumerate(_DIGITS_OF_SCRIPTS):
        plain = pc.replace_substring_regex(plain, f"[{''.join(digits)}]", str(value))
    return plain


def require_patterns(contract: Contract) -> None:
    """Raises BadInput with the names of the contract's patterns that RE2 can't read."""
    wrong = []
    for pattern in contract.personal_pattern:
        try:
            pc.match_substring_regex(pa.array([""]), pattern.pattern)
        except pa.ArrowInvalid:
            wrong.append(pattern.name)
    if wrong:
        raise BadInput(
            "EXP-CONTRACT",
            f"contract {contract.name}: not a regular expression in RE2's syntax: personal_pattern "
            f"{', '.join(wrong)}",
            "Correct the pattern. The syntax: https://github.com/google/re2/wiki/Syntax",
        )


def _list_excused(column: Column) -> list[str]:
    """Return the kinds of values that the contract lets the column have."""
    return column.personal.may_contain if column.personal else []


def _count_texts(values: pa.ChunkedArray) -> pa.Table:
    """Return the texts that are long enough to be searched, and how often each occurs.

    Texts that mostly differ are not compared with each other, because that takes longer than to search each
    of them.
    """
    long = values.filter(pc.greater_equal(pc.binary_length(values), _SHORTEST))
    sample = long.slice(0, _SAMPLE)
    if pc.count_distinct(sample).as_py() > len(sample) // 2:
        return pa.table({"values": long, "counts": pa.repeat(1, len(long))})
    counts = pc.value_counts(long)
    return pa.table({"values": counts.field("values"), "counts": counts.field("counts")})


def _count(texts: pa.Table, detector: Detector) -> int:
    candidates = texts.filter(pc.match_substring_regex(texts["values"], detector.pattern))
    check = detector.check
    if check is None:
        return pc.sum(candidates["counts"]).as_py() or 0
    pairs = zip(candidates["values"].to_pylist(), candidates["counts"].to_pylist(), strict=True)
    return sum(rows for text, rows in pairs if check(text))
