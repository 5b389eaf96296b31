"""Names and values of SQL at their limits, and how resource types name, find and drop their objects."""

from __future__ import annotations

import attrs
import pytest

from lambdas.shared.errors import BadProperties, LakeferryError, NotFound, Refused, ResourceMissing
from lambdas.snowflake import lookup, sql
from tests.support.snowflake_context import (
    EXTERNAL_ID,
    MARK,
    MISSING,
    NAME,
    ORIGIN,
    OWN,
    context,
    result,
    row,
    script,
    sent,
    written,
)

# --- SQL


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ("x" * 255, ""),
        ("x" * 256, "has 256 characters, and 255 are allowed"),
        ("a\nb", "'a\\nb' holds a control character"),
    ],
)
def test_why_a_name_is_none(name, problem):
    assert sql.find_name_problem(name) == problem
    if problem:
        with pytest.raises(BadProperties) as bad:
            sql.identifier(name)
        assert bad.value.problems == (("name", problem),)
    else:
        assert sql.identifier(name).text == f'"{name}"'


@pytest.mark.parametrize(
    ("first", "last"),
    [("\x00", "\x1f"), ("\x7f", "\x9f"), ("\u2028", "\u2029"), ("\ud800", "\udfff")],
)
def test_control_characters_and_their_neighbours(first, last):
    for sign in (first, last):
        with pytest.raises(BadProperties) as bad:
            sql.literal(sign)
        assert bad.value.problems == (("value", f"{sign!r} holds a control character"),)
    for number in {ord(first) - 1, ord(last) + 1} - {-1}:
        assert sql.literal(chr(number)).text == f"'{chr(number)}'"


def test_quotes_and_backslashes_are_doubled():
    assert sql.literal("a'b\\c").text == "'a''b\\\\c'"
    assert sql.identifier('a"b\\c').text == '"a""b\\c"'


def test_a_statement_about_one_object_and_about_any():
    show = sql.by_name("SHOW SCHEMAS LIKE {pattern} IN DATABASE {name}", "A")
    assert show.text == "SHOW SCHEMAS LIKE 'A' IN DATABASE \"A\""
    assert sql.of_any_name(show, "A").text == "SHOW SCHEMAS LIKE '%' IN DATABASE \"A\""
    twice = sql.Sql("LIKE 'A' LIKE 'A'")
    assert sql.of_any_name(twice, "A").text == "LIKE '%' LIKE 'A'"
    assert sql.of_any_name(twice, "B") == twice


def test_parts_are_joined():
    parts = [sql.Sql("a"), sql.Sql("b"), sql.Sql("c")]
    assert sql.listed(parts).text == "a, b, c"
    assert sql.listed(parts, " ").text == "a b c"
    assert (sql.listed(parts[:1]).text, sql.listed([]).text) == ("a", "")
    assert sql.path(["A", 'b"', "c"]).text == '"A"."b"""."c"'
    assert sql.reference("A", "b").text == "'A.\"b\"'"
    assert (sql.number(7).text, sql.number(-7).text, sql.number(True).text) == ("7", "-7", "1")


def test_a_word_is_one_of_a_list():
    assert sql.word("ON ALL_1", of=("OFF", "ON ALL_1")).text == "ON ALL_1"
    for refused in ("ON", "1 A", "A ", "on"):
        with pytest.raises(BadProperties) as bad:
            sql.word(refused, of=("OFF", "ALL", "1 A", "A ", "on"))
        message = f"{refused!r} is none of OFF, ALL, 1 A, A , on"
        assert bad.value.problems == (("value", message),)


@pytest.mark.parametrize(
    ("name", "is_plain"),
    [("A", True), ("_A", True), ("A1_$", True), ("1A", False), ("$A", False), ("a", False), ("A B", False),
     ("", False), ("ORDER", False), ("ACCOUNT", False), ("WITH", False), ("ORDERS", True)],
)  # fmt: skip
def test_a_plain_name_is_in_upper_case_and_not_reserved(name, is_plain):
    assert sql.is_plain(name) is is_plain
    assert sql.format_dotted([name or "-"]) == (name if is_plain else f'"{name or "-"}"')


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a1_$", "A1_$"),
        ("_a", "_A"),
        ("1a", "1a"),
        ('""', ""),
        ('"a""b"', 'a"b'),
        ('"a', '"a'),
        ('a"', 'a"'),
        ('!a"', '!a"'),
        ("!a!", "!a!"),
        ("'a'", "'a'"),
    ],
)
def test_what_a_name_means(written, meant):
    assert sql.to_exact_name(written) == meant


@pytest.mark.parametrize(
    ("chosen", "is_refused"),
    [("", False), ("a_1", False), ("_", False), ("x" * 255, False), ("x" * 256, True), ("1a", True),
     ("a-b", True), ("a$", True)],
)  # fmt: skip
def test_a_chosen_name_needs_no_quotes(chosen, is_refused):
    message = (
        f"{chosen!r} can't be a name: letters, digits and underscores; Snowflake shows them in upper case"
    )
    assert list(sql.list_name_problems(chosen)) == ([("name", message)] if is_refused else [])


def test_generated_names():
    assert sql.to_plain_name("lake-dev-1") == "LAKE_DEV_1"
    assert sql.to_plain_name("1lake") == "_1LAKE"
    assert sql.build_external_id("abc") == "lakeferry-abc"


# --- objects

SHOW = sql.by_name("SHOW ROLES LIKE {pattern}", OWN)
DROP = sql.by_name("DROP ROLE {name}", OWN)
FOREIGN = f"{OWN} exists, and its comment doesn't hold `{MARK}`"


def owned(held):
    return attrs.evolve(held, is_owned=lambda: True)


def test_an_object_has_the_chosen_or_a_generated_name_and_a_comment(server):
    held = context(server)
    assert lookup.choose_object_name(held, "my_role") == "MY_ROLE"
    assert lookup.choose_object_name(held) == OWN
    assert lookup.write_ownership_tag(held) == f"lakeferry {NAME}"
    assert lookup.write_ownership_comment(held).text == f"'lakeferry {NAME}'"
    assert lookup.choose_external_id(held) == EXTERNAL_ID == f"lakeferry-{ORIGIN}"


def test_an_object_is_found_by_its_exact_name_whoever_owns_it(server):
    wanted = row(comment="somebody else's")
    script(server, **{"SHOW ROLES": result(row(OWN.lower()), row(OWN[:-1]), row(OWN + "X"), wanted, row())})
    assert lookup.find_shown(context(server), SHOW, OWN) == wanted
    assert lookup.find_shown(context(server), SHOW, "OTHER") is None


@pytest.mark.parametrize("find", [lookup.find_managed, lookup.require_existing])
def test_an_object_of_somebody_else_is_an_error_with_the_reason(server, find):
    script(server, **{"SHOW ROLES": result(row(comment=None))})
    with pytest.raises(Refused, match=f"SNF-FOREIGN  {FOREIGN}"):
        find(context(server), SHOW, OWN)
    with pytest.raises(Refused, match=f"SNF-FOREIGN  {FOREIGN}"):
        find(owned(context(server)), SHOW, OWN)
    with pytest.raises(
        LakeferryError, match=f"SNF-COMMENT-CHANGED  this deployment created {OWN}, but {FOREIGN}"
    ):
        find(owned(context(server, deleting=True)), SHOW, OWN)
    assert lookup.find_managed(context(server, deleting=True), SHOW, OWN) is None


def test_an_object_that_must_exist(server):
    with pytest.raises(ResourceMissing, match=f"LF-VANISHED  {OWN} is not there"):
        lookup.require_existing(context(script(server)), SHOW, OWN)
    script(server, **{"SHOW ROLES": result(row())})
    assert lookup.require_existing(context(server), SHOW, OWN) == row()
    assert lookup.find_managed(context(server), SHOW, OWN) == row()


def test_the_id_of_a_managed_object_is_its_name_unless_the_type_has_another(server):
    script(server, **{"SHOW ROLES": result(row())})
    for known_id in (None, OWN):
        assert lookup.find_ids(context(server), SHOW, OWN, known_id) == [OWN]
        assert lookup.find_ids(context(server), SHOW, OWN, known_id, f"S.{OWN}") == [f"S.{OWN}"]
    assert set(sent(server)) == {SHOW.text}


@pytest.mark.parametrize("renamed", ["ARCHIVED", "RENAMED"])
def test_a_known_object_that_has_another_name_now_is_an_error(server, renamed):
    others = [row("OTHER", "of somebody"), row(renamed, f"sales; {MARK}")]
    script(server, **{SHOW.text: result(columns=("name",)), "SHOW ROLES LIKE '%'": result(*others)})
    assert lookup.find_ids(context(server), SHOW, OWN, None) == []
    assert sent(server) == [SHOW.text]
    message = f"SNF-RENAMED  {OWN} was renamed to {renamed}, whose comment holds `{MARK}`"
    with pytest.raises(LakeferryError, match=message):
        lookup.find_ids(context(server), SHOW, OWN, OWN)
    assert sent(server)[-1] == "SHOW ROLES LIKE '%'"


def test_objects_of_others_and_one_that_appeared_just_now_were_not_renamed(server):
    others = [row("OTHER", "of somebody"), row("NONE", None), row()]
    script(server, **{SHOW.text: result(columns=("name",)), "SHOW ROLES LIKE '%'": result(*others)})
    assert lookup.find_ids(context(server), SHOW, OWN, OWN) == []


@pytest.mark.parametrize(
    ("shown", "drops"),
    [([], 0), ([row(comment="of somebody")], 0), ([row()], 1)],
    ids=["gone", "foreign", "own"],
)
def test_only_a_managed_object_is_dropped(server, shown, drops):
    script(server, **{"SHOW ROLES": result(*shown, columns=("name", "comment"))})
    lookup.drop(context(server, deleting=True), SHOW, OWN, DROP)
    assert written(server) == [f'DROP ROLE "{OWN}"'] * drops


def test_an_object_whose_container_is_gone_needs_no_drop(server):
    lookup.drop(context(script(server, **{"SHOW ROLES": MISSING}), deleting=True), SHOW, OWN, DROP)
    assert written(server) == []


@pytest.mark.parametrize("deleting", [True, False])
@pytest.mark.parametrize("is_gone", [True, False])
def test_only_a_missing_container_of_an_object_to_delete_makes_it_gone(server, deleting, is_gone):
    def fail():
        raise NotFound(lookup.errors.VANISHED, "not to be told")

    held = context(server, deleting=deleting)
    if deleting and is_gone:
        assert lookup.treat_gone_container_as_empty(held, lambda: is_gone, fail) == []
    else:
        with pytest.raises(NotFound, match="not to be told"):
            lookup.treat_gone_container_as_empty(held, lambda: is_gone, fail)
    assert lookup.treat_gone_container_as_empty(held, lambda: is_gone, lambda: ["a"]) == ["a"]


@pytest.mark.parametrize(
    ("has_database", "has_schema", "is_gone"), [(True, True, False), (True, False, True), (False, True, True)]
)
def test_a_schema_is_gone_alone_or_with_its_database(server, has_database, has_schema, is_gone):
    answers = {
        "SHOW DATABASES LIKE 'D'": result(row("D")) if has_database else result(row("d")),
        "SHOW SCHEMAS LIKE 'S' IN DATABASE \"D\"": result(row("S")) if has_schema else result(row("s")),
    }
    held = context(script(server, **answers))
    assert lookup.database_is_gone(held, "D") is not has_database
    assert lookup.schema_is_gone(held, "D", "S") is is_gone


def test_a_role_is_gone_when_no_role_has_exactly_its_name(server):
    held = context(script(server, **{"SHOW ROLES LIKE 'R'": result(row("r"), row("R"))}))
    assert not lookup.role_is_gone(held, "R")
    assert lookup.role_is_gone(held, "OTHER")
