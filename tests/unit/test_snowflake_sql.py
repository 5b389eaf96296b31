"""SQL statements: a value can't become anything but a value, and every template is a valid statement."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from lambdas.shared.errors import BadProperties
from lambdas.snowflake import client, sql
from lambdas.snowflake.resources import grant
from tests.support import sql_tokens

FOLDER = Path(client.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))
HOSTILE = [
    "'", "''", '"', '""', ";", "--", "/*", "*/", "//", "$$", "\\", "\\'", "'; DROP DATABASE D; --",
    '" OR 1=1 --', "{name}", "{", "}", "%s", ":1", "?", "\u2019", "\uff07", "\u02bc", "`", "\u00a0",
    "\U0001f600", "\\\\'", "&x", "\\u0027", "x' || (SELECT 1) || '",
]  # fmt: skip
PIECES = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=6), min_size=1, max_size=6).map("".join)
MANY = settings(max_examples=500)


def templates():
    """Return every template of the sources by its position: constants, and literals that are passed to
    `statement`.
    """
    found = {}
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_template(node.value):
                found[f"{file.stem}:{node.value[:48]}"] = node.value
    return found


def is_template(text):
    return bool(re.match(r"(CREATE|ALTER|DROP|SHOW|DESC|SELECT|GRANT|REVOKE|ADD|REMOVE|SET) [A-Z({]", text))


TEMPLATES = templates()
STATEMENTS = {position: text for position, text in TEMPLATES.items() if not re.match("ADD|REMOVE|SET", text)}


def holes(template):
    return dict.fromkeys(re.findall(r"{(\w+)}", template))


#: Placeholders of literals. The others are names, except those below.
LITERALS = {
    "comment", "pattern", "size", "url", "role_arn", "external_id", "uri", "account", "region", "location",
    "key", "table",
}  # fmt: skip


def filled(template, text):
    """Return the template with `text` for each placeholder of a foreign value."""
    literal = sql.literal(text)
    name = sql.identifier(text)
    parts = dict.fromkeys(holes(template), name) | {
        hole: literal for hole in LITERALS & holes(template).keys()
    }
    fixed = {
        "seconds": sql.number(60),
        "what": sql.statement("USAGE ON SCHEMA {path}", path=name),
        "grantee": sql.statement("ROLE {role}", role=name),
        "source": sql.statement("CATALOG_TABLE_NAME={table}", table=literal),
        "settings": sql.statement("DEFAULT_ROLE={name}", name=name),
        "change": sql.statement("ADD ({namespaces}) TO ALLOWED_NAMESPACES", namespaces=literal),
        "namespaces": sql.listed([literal, literal]),
        "privilege": sql.word("USAGE", of=grant.PRIVILEGES),
        "on": sql.word("SCHEMA", of=grant.ON),
        "which": sql.word("ALL", of=("ALL",)),
        "volume": literal,
        "integration": literal,
    }
    if "INTEGRATION {name}" in template or "STORAGE_LOCATIONS" in template:
        fixed["role"] = fixed["namespace"] = literal
    if "CATALOG_NAMESPACE={namespace}" in template:
        fixed["namespace"] = literal
    if "SYSTEM$" in template:
        fixed |= {"name": sql.reference(text), "path": sql.reference(text, text)}
    return sql.statement(template, **{hole: fixed.get(hole, part) for hole, part in parts.items()}).text


def test_no_text_of_five_special_characters_breaks_out():
    """All 111,110 texts: quotes, escapes, comments, dollars and semicolons in every order."""
    count = 0
    for length in range(1, 6):
        for signs in itertools.product("'\"\\;-/*$ a", repeat=length):
            text = "".join(signs)
            written = f"{sql.identifier(text).text} {sql.literal(text).text}"
            assert sql_tokens.tokens(written) == [("name", text), ("text", text)]
            count += 1
    assert count > 100_000


@MANY
@given(PIECES)
@example("'; DROP DATABASE D; --")
@example("\\")
@example("\\'")
def test_a_text_stays_that_text(text):
    try:
        written = sql.literal(text).text
    except BadProperties:
        assert any(not sign.isprintable() for sign in text)
        return
    assert sql_tokens.tokens(written) == [("text", text)]


@MANY
@given(PIECES)
def test_a_name_stays_that_name(text):
    try:
        written = sql.identifier(text).text
    except BadProperties:
        assert not text or any(not sign.isprintable() for sign in text)
        return
    assert sql_tokens.tokens(written) == [("name", text)]
    assert sqlglot.exp.to_identifier(sqlglot.parse_one(written, dialect="snowflake").name).name == text


@MANY
@given(st.lists(PIECES, min_size=1, max_size=3))
def test_a_name_in_full_is_read_back(names):
    try:
        written = sql.format_dotted(names)
    except BadProperties:
        return
    assert sql.split(written) == tuple(names)
    assert sql_tokens.values(sql.reference(*names).text, "text") == [written]


@pytest.mark.parametrize("position", STATEMENTS)
def test_every_template_is_one_statement_of_known_tokens(position):
    text = filled(STATEMENTS[position], "X")
    shape = sql_tokens.shape(text)
    assert shape[0] in ("CREATE", "ALTER", "DROP", "SHOW", "DESC", "SELECT", "GRANT", "REVOKE")
    assert "{" not in text
    assert text == " ".join(text.split())


@pytest.mark.sampled(20)
@pytest.mark.parametrize("position", STATEMENTS)
@settings(max_examples=30)
@given(PIECES)
@example("'; DROP DATABASE D; --")
@example('"; DROP DATABASE D; --')
@example("\\")
def test_no_value_changes_a_statement(position, text):
    """The server sees the same tokens as with a harmless value, and one of them is the value."""
    try:
        written = filled(STATEMENTS[position], text)
    except BadProperties:
        return
    harmless = filled(STATEMENTS[position], "X")
    assert sql_tokens.shape(written) == sql_tokens.shape(harmless)
    tokens, usual_tokens = (
        [value for kind in ("name", "text") for value in sql_tokens.values(statement, kind)]
        for statement in (written, harmless)
    )
    values = [
        token
        for token, usual_token in zip(tokens, usual_tokens, strict=True)
        if token not in ("S3", "X") and usual_token != ""
    ]
    assert all(text in token or sql.split(token) in ((text,), (text, text)) for token in values)


#: The classes of sqlglot's syntax trees, by the beginning of the statement.
KNOWN = {
    "CREATE WAREHOUSE": exp.Create,
    "CREATE DATABASE": exp.Create,
    "CREATE ICEBERG TABLE": exp.Create,
    "DROP WAREHOUSE": exp.Drop,
    "DROP DATABASE": exp.Drop,
    "DROP SCHEMA": exp.Drop,
    "SELECT": exp.Select,
    "SHOW DATABASES": exp.Show,
    "SHOW SCHEMAS": exp.Show,
    "SHOW USERS": exp.Show,
    "GRANT USAGE ON SCHEMA": exp.Grant,
}


@pytest.mark.parametrize("position", STATEMENTS)
@pytest.mark.parametrize("text", ["X", "'; DROP DATABASE D; --", 'a"b', "\\"])
def test_another_parser_sees_one_statement_too(position, text):
    written = filled(STATEMENTS[position], text)
    if written.startswith("DESC USER"):
        pytest.skip("sqlglot doesn't know DESC USER")
    trees = sqlglot.parse(written, dialect="snowflake")
    assert len(trees) == 1
    for start, kind in KNOWN.items():
        if written.startswith(start):
            assert isinstance(trees[0], kind), start


def test_the_templates_were_found():
    assert len(STATEMENTS) > 50
    assert {text.split()[0] for text in STATEMENTS.values()} == {
        "CREATE", "ALTER", "DROP", "SHOW", "DESC", "SELECT", "GRANT", "REVOKE"
    }  # fmt: skip


def test_a_template_with_a_hole_in_quotes_would_be_found():
    with pytest.raises(ValueError, match="other"):
        sql_tokens.tokens(sql.statement("DROP ROLE '{name}", name=sql.identifier("a")).text)
    broken = sql.statement("COMMENT='{text}'", text=sql.literal("x")).text
    assert sql_tokens.shape(broken) != sql_tokens.shape("COMMENT='x'")


@pytest.mark.parametrize("text", ["a;b", "a--b", "a/*b*/", "$$a$$", "'a", '"a', "a'b"])
def test_the_grammar_refuses_syntax_that_our_statements_never_have(text):
    with pytest.raises(ValueError, match=r"comment|dollars|other"):
        sql_tokens.tokens(text)


def calls_of(tree, name):
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (name, f"sql.{name}")
    ]


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_sql_is_composed_in_one_module(file):
    assert lines_with_loose_sql(file.read_text(), is_sql_module=file.name == "sql.py") == []


def lines_with_loose_sql(source, is_sql_module=False):
    """Return lines that compose SQL other than from a constant template or from a literal."""
    tree = ast.parse(source)
    loose = [] if is_sql_module else [call.lineno for call in calls_of(tree, "Sql")]
    for call in [*calls_of(tree, "statement"), *calls_of(tree, "by_name")]:
        given = call.args[0]
        loops = isinstance(given, ast.Name) and given.id in ("template", "slot")
        constant = isinstance(given, ast.Name) and given.id.startswith("_") and given.id.isupper()
        whole = isinstance(given, ast.Constant)
        table = isinstance(given, ast.Subscript) and ast.unparse(given).startswith(
            ("_MEMBERS[", "keypair.SET_SLOT[")
        )
        if not (loops or constant or whole or table):
            loose.append(call.lineno)
    return loose


@pytest.mark.parametrize(
    "line",
    [
        "Sql('DROP ' + name)",
        "sql.by_name(f'DROP {name}', name)",
        "sql.Sql(text)",
        "sql.statement(f'DROP {name}')",
        "statement(text)",
        "sql.statement('DROP ' + name)",
    ],
)
def test_sql_composed_elsewhere_is_found(line):
    assert lines_with_loose_sql(f"x = 1\n{line}\n") == [2]


@pytest.mark.parametrize("text", ["\x00", "a\nb", "\x7f", "\x85", "\u2028", "\ud800"])
def test_control_characters_are_refused(text):
    for make in (sql.literal, sql.identifier):
        with pytest.raises(BadProperties):
            make(text)


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_an_invalid_name_is_refused(name):
    with pytest.raises(BadProperties):
        sql.identifier(name)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("sales", ("SALES",)),
        ("SALES.public.Trades", ("SALES", "PUBLIC", "TRADES")),
        ('"Sales"."lkc-1"."stock_trades"', ("Sales", "lkc-1", "stock_trades")),
        ('D."a.b"', ("D", "a.b")),
        ('"a""b"', ('a"b',)),
        ("Data Team", ("Data Team",)),
        ("a..b", ()),
        (".a", ()),
        ("a.", ()),
        ("", ()),
        ('"a"b', ()),
        ('"a" b', ()),
        ('a"b"', ()),
        ('"a".', ()),
    ],
)
def test_names_as_users_and_snowflake_write_them(written, meant):
    assert sql.split(written) == meant


@pytest.mark.parametrize("written", ["", '"', "a b"])
def test_what_is_not_a_whole_quoted_name_is_taken_as_it_is(written):
    assert sql.to_exact_name(written) == written


def test_a_name_is_written_bare_only_where_it_means_the_same():
    assert sql.format_dotted(["SALES", "PUBLIC", "T1"]) == "SALES.PUBLIC.T1"
    assert sql.format_dotted(["ORDER", "lkc-1", "t"]) == '"ORDER"."lkc-1"."t"'
    assert sql.reference("V").text == "'V'"
    assert sql.reference("a'b").text == "'\"a''b\"'"


@pytest.mark.parametrize("text", ["USAGE ON SCHEMA", "usage", "", "USAGE; DROP", "SELECT "])
def test_a_word_is_one_of_those_allowed(text):
    with pytest.raises(BadProperties):
        sql.word(text, of=grant.PRIVILEGES)
    with pytest.raises(BadProperties):
        sql.word("a;b", of=("a;b",))


def test_a_plain_text_is_no_part_of_a_statement():
    with pytest.raises(AttributeError):
        sql.statement("DROP ROLE {name}", name="R; DROP ROLE S")


@given(st.integers())
def test_a_number_is_digits(value):
    assert re.fullmatch(r"-?[0-9]+", sql.number(value).text)
