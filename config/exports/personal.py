"""Which fields of a topic are personal: by their tags, by the names on their whole path, and by the fields
beside them.

It is not for the job or Lambda functions, which don't read schemas.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

import attrs

from config.exports import personal_words as words

#: Types of numbers and times. Words of texts say nothing about fields of these types.
_NO_TEXT: Final = re.compile(r"int|long|float|double|decimal|date|uuid|(local-)?time.*")
_TEXT: Final = frozenset({"string", "uuid"})
_NEVER_BY_NAME: Final = frozenset({"boolean", "null"})
_IDS: Final = frozenset({"id", "ids", "key", "code", "uuid"})
_COUNTS: Final = re.compile(
    r"(^|_)(number|no|num|anzahl|nombre|numero|numer|liczba|aantal)_(of|de|di|der|von|van)_"
)


class SchemaField(Protocol):
    """What this module needs to know of a field.

    `record` is the Avro name of the record type, "" for other types.
    """

    @property
    def path(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def tagged(self) -> bool: ...
    @property
    def record(self) -> str: ...


@attrs.frozen
class Finding:
    """Why a field is personal, to follow its path in a sentence.

    `only_as_text` says that the field is personal only because of the fields beside it. A column then needs
    a decision only if its values are texts.
    """

    why: str
    only_as_text: bool = False


def personal_fields(topic: str, record: str, fields: Iterable[SchemaField]) -> dict[str, Finding]:
    """Return the personal fields of a topic by path. `record` is the Avro name of the topic's own record."""
    fields_by_path = {field.path: field for field in fields}
    topics = (topic, record)
    personal = {
        path: Finding(why)
        for path, field in fields_by_path.items()
        if (why := _explain_personal(field, fields_by_path, topics))
    }
    return personal | {
        path: finding
        for path, finding in _find_texts_beside(fields_by_path, personal, topics)
        if path not in personal
    }


def add_findings(findings: Mapping[str, Finding], more: Iterable[tuple[str, Finding]]) -> dict[str, Finding]:
    """Return the findings with more of them. One for texts only doesn't replace one for every column."""
    merged = dict(findings)
    for path, finding in more:
        if path not in merged or merged[path].only_as_text or not finding.only_as_text:
            merged[path] = finding
    return merged


def split_words(name: str) -> list[str]:
    """Return the words of a name in lower case, without accents and digits: kundenNr2 has the words kunden
    and nr.
    """
    folded = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", folded)]


def _find_parent(path: str) -> str:
    """Return the path of the record or the union that contains the field, "" for a field of the topic's own
    record. It contains the items of its arrays and maps, too.
    """
    return path.rpartition(".")[0]


def _read_own_name(path: str) -> str:
    return re.sub(r"(\[\]|\{(key)?\})+$", "", path).rpartition(".")[2]


def _drop_branch(path: str, fields: Mapping[str, SchemaField]) -> str:
    """Return the path of the union that the field is a branch of, or the path itself.

    The name of a union says what its values are, whichever branch they have.
    """
    outer = _find_parent(path)
    return outer if outer in fields and fields[outer].kind == "union" else path


def _list_record_names(path: str, fields: Mapping[str, SchemaField]) -> tuple[str, str]:
    """Return the names that say what the record, array or map at the path describes."""
    record = fields[path].record if path in fields else ""
    return _read_own_name(_drop_branch(path, fields)), record.rpartition(".")[2]


def _explain_personal(
    field: SchemaField,
    fields: Mapping[str, SchemaField],
    topics: tuple[str, str],
) -> str | None:
    if field.tagged:
        return "it has the tag PII"
    name = "_".join(split_words(_read_own_name(_drop_branch(field.path, fields))))
    if field.kind in _NEVER_BY_NAME:
        return None
    if word := _find_personal_word(name, field.kind):
        return f"its name has the word {word}"
    if field.kind == "enum" or _COUNTS.search(name):
        return None
    return _explain_by_person(name, field, fields, topics)


def _explain_by_person(
    name: str,
    field: SchemaField,
    fields: Mapping[str, SchemaField],
    topics: tuple[str, str],
) -> str | None:
    """Return why the field is personal, as seen from the person or the address in its name or in the records
    around it.
    """
    if _names_person(name, field.kind):
        return "its name is that of a person"
    if field.kind != "record" and _is_of_person(name, field.kind):
        return "its name says whose it is"
    context = _find_context(field.path, fields, topics)
    return _explain_in_context(name, field.kind, *context) if context else None


def _find_personal_word(name: str, kind: str) -> str | None:
    """Return the word or phrase that is personal wherever it occurs, None if there is none."""
    if kind == "enum":
        return _find_phrase(words.TRAITS, name, kind)
    is_value = _NO_TEXT.fullmatch(kind) is not None
    groups = (words.VALUES,) if is_value else (words.VALUES, words.TEXTS, words.TRAITS)
    for group in groups:
        if word := _find_phrase(group, name, kind):
            return word
    return None if is_value else _find_phrase(words.ADDRESSES, name, kind, besides=_IDS)


def _find_phrase(
    group: tuple[str, ...], name: str, kind: str, besides: frozenset[str] = frozenset()
) -> str | None:
    """Return the phrase of the group in the name, unless a word after it says that the field is only about
    such a value.
    """
    for match in _build_pattern(group).finditer(name):
        after = set(re.findall(r"[a-z]+", name[match.end(1) :]))
        if not _is_about_the_value(after) and not after & besides:
            return match[1]
    return None


def _is_about_the_value(after: Iterable[str]) -> bool:
    return any(
        word in words.ABOUT_THE_VALUE or word.removesuffix("s") in words.ABOUT_THE_VALUE for word in after
    )


@functools.cache
def _build_pattern(group: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that finds the group's phrases in a name in snake case, in the singular or the
    plural.
    """
    return re.compile(rf"(?:^|(?<=_))({_join_phrases(group)})(?:es|s|n|en)?(?=_|$)")


def _join_phrases(group: Iterable[str]) -> str:
    longest_first = sorted(group, key=len, reverse=True)
    return "|".join(phrase.replace("_", "_?") for phrase in longest_first)


def _names_person(name: str, kind: str) -> bool:
    """Return whether a text is called like a person, as in `customer` or `assigned_employee`."""
    match = re.search(rf"(?:^|_)({_join_phrases(words.PERSONS)})s?$", name)
    return kind in _TEXT and match is not None and match[1] not in words.NOT_ALWAYS_PERSONS


def _is_of_person(name: str, kind: str) -> bool:
    """Return whether the name joins a person, or a person's address, with what belongs to it, as in
    `user_id`.
    """
    is_value = _NO_TEXT.fullmatch(kind) is not None
    for pattern in _build_person_patterns(is_value):
        for match in pattern.finditer(name):
            after = re.findall(r"[a-z]+", name[match.end() :])
            if not _is_about_the_value(after):
                return True
    return False


@functools.cache
def _build_person_patterns(is_value: bool) -> tuple[re.Pattern[str], ...]:
    texts = () if is_value else (*words.OF_PERSON_TEXTS, *words.FREE_TEXTS)
    belongings = _join_phrases((*words.OF_PERSON_VALUES, *texts))
    persons = _join_phrases(words.PERSONS)
    # In French, Italian, Spanish and Polish, the person comes last: nom_client, id_cliente.
    first = "id|numero|numer|codice|codigo" + ("" if is_value else "|nom|nombre|nome|naam|nazwa|imie|name")
    patterns = [
        rf"(?:^|_)(?:{persons})(?:en|n|s)?_?(?:{belongings})(?:s|n|en)?(?=_|$)",
        rf"(?:^|_)(?:{first})_?(?:(?:of|de|du|di|del|della|van|von)_(?:the_|la_|le_)?)?(?:{persons})(?=_|$)",
    ]
    if not is_value:
        places = _join_phrases((*words.PLACES_OF_PERSONS, "ship", "bill", "to", "recipient"))
        parts = _join_phrases(word for word in words.OF_ADDRESS_TEXTS if word not in ("name", "line"))
        patterns.append(rf"(?:^|_)(?:{places})_(?:{parts})(?:es|s)?(?=_|$)")
    return tuple(re.compile(pattern) for pattern in patterns)


def _find_context(
    path: str, fields: Mapping[str, SchemaField], topics: tuple[str, str]
) -> tuple[str, str] | None:
    """Return whether the nearest record that says what it describes is about a `person` or an `address`, and
    its name.
    """
    outer = _find_parent(path)
    while outer:
        subject, is_clear = _find_subject(_list_record_names(outer, fields))
        if is_clear:
            return (subject, _read_own_name(_drop_branch(outer, fields))) if subject else None
        outer = _find_parent(outer)
    # A topic called deliveries has events, not addresses.
    subject, _ = _find_subject(topics, words.ADDRESSES)
    return (subject, f"topic {topics[0]}") if subject else None


def _find_subject(
    names: Iterable[str], places: tuple[str, ...] = (*words.ADDRESSES, *words.PLACES_OF_PERSONS)
) -> tuple[str, bool]:
    """Return `person`, `address` or "" for the names of one record, and whether any of them says what it
    describes.
    """
    is_clear = False
    for name in names:
        candidates = [
            word
            for word in split_words(name)
            if word not in words.NEUTRAL and word.removesuffix("s") not in words.NEUTRAL
        ]
        end = "_".join(candidates)
        if re.search(rf"(?:^|_)(?:{_join_phrases(words.PERSONS)})(?:en|n|s)?$", end):
            return "person", True
        if re.search(rf"(?:^|_)(?:{_join_phrases(places)})(?:es|s|n|en)?$", end):
            return "address", True
        is_clear = is_clear or bool(candidates)
    return "", is_clear


def _explain_in_context(name: str, kind: str, subject: str, subject_name: str) -> str | None:
    is_text = not _NO_TEXT.fullmatch(kind)
    if subject == "person":
        texts = (*words.OF_PERSON_TEXTS, *words.FREE_TEXTS) if is_text else ()
        group = (*words.OF_PERSON_VALUES, *texts)
    else:
        geo = ("lat", "lon", "lng", "latitude", "longitude")
        group = words.OF_ADDRESS_TEXTS if is_text else geo
    if not _is_plainly(group, name, subject):
        return None
    described = "a person" if subject == "person" else "an address"
    return f"it is part of {subject_name}, which describes {described}"


def _is_plainly(group: tuple[str, ...], name: str, subject: str) -> bool:
    """Return whether the name is one of the group's words, after words such as `home`, and not that of
    something else.

    Ids need the bare word, because an id of something else often stands in a record about a person, such as
    `segment_id`.
    """
    match = re.search(rf"(?:^|_)({_join_phrases(group)})(?:es|s)?$", name)
    if match is None:
        return False
    before = name[: match.start()]
    owners = (
        "own|my|home|current|last|first|full|legal|real|display|birth|work|private|internal|external|geo"
        "|profile"
    )
    is_bare = re.fullmatch(rf"(?:(?:{owners}|{_join_phrases(words.PERSONS)})_?)*", before) is not None
    return is_bare or (subject == "address" and match[1] not in ("name", "line"))


def _find_texts_beside(
    fields: Mapping[str, SchemaField], personal: Mapping[str, Finding], topics: tuple[str, str]
) -> Iterator[tuple[str, Finding]]:
    """Yield the texts in or below a record that has a personal field.

    In the topic's own record, which usually describes an event, only comments and exact places are meant,
    unless the record is about a person. Otherwise each flat topic with one personal field would need a
    decision for its states, codes and units.
    """
    for path, field in fields.items():
        if field.kind not in _TEXT:
            continue
        if record := _find_personal_record(path, fields, personal, topics):
            name, beside = record
            yield (
                path,
                Finding(f"it is a text beside {beside}, which is personal, in {name}", only_as_text=True),
            )


def _find_personal_record(
    path: str, fields: Mapping[str, SchemaField], personal: Mapping[str, Finding], topics: tuple[str, str]
) -> tuple[str, str] | None:
    """Return the name of the nearest record around the text that has a personal field, and that field."""
    path = _drop_branch(path, fields)
    outer = _find_parent(path)
    name = "_".join(split_words(_read_own_name(path)))
    while outer:
        is_record = outer in fields and fields[outer].kind == "record"
        if is_record and (beside := _find_personal_part(outer, fields, personal)):
            _, is_clear = _find_subject(_list_record_names(outer, fields))
            if is_clear or _may_hold_anything(name) or _is_person(topics):
                return outer, beside
        outer = _find_parent(outer)
    if (beside := _find_personal_part("", fields, personal)) and (
        _is_person(topics) or (_find_parent(path) == "" and _may_hold_anything(name))
    ):
        return f"the record of topic {topics[0]}", beside
    return None


def _find_personal_part(
    record: str, fields: Mapping[str, SchemaField], personal: Mapping[str, Finding]
) -> str | None:
    """Return a personal field of the record itself, or, if the record is about a person, of a record inside
    it.
    """
    direct_part = next((path for path in personal if _find_record(path, fields) == record), None)
    if direct_part or not record:
        return direct_part
    subject, _ = _find_subject(_list_record_names(record, fields))
    inside = (path for path in personal if path.startswith(f"{record}."))
    return next(inside, None) if subject == "person" else None


def _find_record(path: str, fields: Mapping[str, SchemaField]) -> str:
    """Return the path of the record that has the field: the items of an array are part of the record that has
    the array.
    """
    outer = _find_parent(path)
    while outer and fields[outer].kind != "record":
        outer = _find_parent(outer)
    return outer


def _is_person(topics: tuple[str, str]) -> bool:
    return _find_subject(topics)[0] == "person"


def _may_hold_anything(name: str) -> bool:
    return any(_build_pattern(group).search(name) for group in (words.FREE_TEXTS, words.EXACT_PLACES))
