"""How fields are followed through single parts of a query, and why one can't be followed."""

from __future__ import annotations

import pytest
import sqlglot

from config.deployments import lineage
from config.deployments.lineage import Origin, Unknown, find_origins
from config.exports import topic_schema
from config.exports.personal import Finding

COLUMNS = {"orders": ["id", "party", "lines"], "trades": ["id", "price", "a b"]}


def trace(create):
    return find_origins(create, COLUMNS.get)


def select(query):
    return trace(f"CREATE TABLE made AS {query}")


def copy(topic, path):
    return Origin(frozenset({(topic, path)}), (topic, path))


def computed(*fields, unknown=""):
    return Origin(frozenset(fields), None, unknown)


ID = ("orders", "id")
PARTY = ("orders", "party")
PRICE = ("trades", "price")
LINES = ("orders", "lines")
EXACT = {
    # What is copied, with everything inside it, and what is computed.
    "SELECT id FROM orders": copy(*ID),
    "SELECT party.name.last AS x FROM orders": copy("orders", "party.name.last"),
    "SELECT id || '' AS x FROM orders": computed(ID),
    "SELECT CAST(id AS STRING) AS x FROM orders": computed(ID),
    "SELECT 1 AS x FROM orders": computed(),
    "SELECT `$rowtime` AS x FROM orders": computed(),
    "SELECT `a b` AS x FROM trades": copy("trades", "a b"),
    # A field inside of what a query returns.
    "SELECT p.name AS x FROM (SELECT party AS p FROM orders)": copy("orders", "party.name"),
    "SELECT p.name AS x FROM (SELECT party.core AS p FROM orders)": copy("orders", "party.core.name"),
    "SELECT p.name AS x FROM (SELECT UPPER(party) AS p FROM orders)": computed(PARTY),
    # Branches of a UNION.
    "SELECT id AS x FROM orders UNION ALL SELECT id FROM orders": copy(*ID),
    "SELECT id AS x FROM orders UNION ALL SELECT price FROM trades": computed(ID, PRICE),
    "SELECT id AS x FROM orders UNION ALL SELECT udf(price) FROM trades": computed(
        ID, PRICE, unknown="function udf computes it"
    ),
    "SELECT udf(id) AS x FROM orders UNION ALL SELECT other(price) FROM trades": computed(
        ID, PRICE, unknown="function udf computes it"
    ),
    "SELECT x.f AS x FROM (SELECT party AS x FROM orders UNION ALL SELECT price FROM trades)": computed(
        PARTY, PRICE
    ),
    # Functions.
    "SELECT CONCAT_WS(',', id, party) AS x FROM orders": computed(ID, PARTY),
    "SELECT SPLIT_INDEX(id, ',', 1) AS x FROM orders": computed(ID),
    "SELECT split_index(id, ',', udf(party)) AS x FROM orders": computed(
        ID, PARTY, unknown="function udf computes it"
    ),
    "SELECT COUNT(id) + 1 AS x FROM orders": computed(),
    "SELECT COUNT(id) + MAX(id) AS x FROM orders": computed(ID),
    "SELECT SUM(price) OVER (PARTITION BY id) AS x FROM trades": computed(PRICE),
    "SELECT RANK() OVER (ORDER BY id) AS x FROM orders": computed(),
    "SELECT id || (SELECT MAX(price) FROM trades) AS x FROM orders": computed(
        ID, unknown="a subquery computes it"
    ),
    "SELECT EXISTS (SELECT 1 FROM trades) AS x FROM orders": computed(unknown="a subquery computes it"),
    "SELECT UPPER(ROW(id, party).id) AS x FROM orders": computed(ID, PARTY),
    "SELECT UPPER(tumble(id)) AS x FROM orders": computed(ID, unknown="function tumble computes it"),
    "SELECT party.udf(id) AS x FROM orders": computed(unknown="a function of another database computes it"),
    "SELECT ROW(id, party).id AS x FROM orders": computed(ID, PARTY),
    "SELECT fn(id).a AS x FROM orders": computed(ID, unknown="function fn computes it"),
    "SELECT CONCAT(party.*) AS x FROM orders": computed(unknown="a function of another database computes it"),
    # Table functions.
    "SELECT u.sku AS x FROM orders CROSS JOIN UNNEST(lines) AS u (sku)": computed(LINES),
    "SELECT u.sku AS x FROM orders CROSS JOIN UNNEST(lines, party) AS u (sku, p)": computed(LINES, PARTY),
    "SELECT trades.price AS x FROM `trades` JOIN orders ON TRUE": copy(*PRICE),
    "SELECT u.sku AS x FROM orders CROSS JOIN LATERAL UNNEST(lines) AS u (sku)": computed(LINES),
    "SELECT u.sku AS x FROM orders, LATERAL TABLE(explode(lines)) AS u (sku)": computed(
        unknown="a table function computes it"
    ),
    # Columns of one name.
    "SELECT id, orders.id FROM orders": copy(*ID),
    "SELECT t.id, o.id FROM trades t JOIN orders o ON TRUE": computed(("trades", "id"), ID),
    # Names that lead nowhere.
    "SELECT nothing AS x FROM orders JOIN trades ON TRUE": computed(
        unknown="nothing can't be found in its sources"
    ),
    # Texts and names keep what they are.
    r"SELECT CONCAT('it''s \ ', id) AS x FROM orders": computed(ID),
    "SELECT CONCAT(';', 'FROM nowhere', id) AS x FROM orders": computed(ID),
}


@pytest.mark.parametrize("query", EXACT)
def test_what_a_column_copies_and_what_it_is_computed_from(query):
    (found,) = select(query).values()
    assert found == EXACT[query]


WINDOW = "DESCRIPTOR(`$rowtime`), INTERVAL '1' MINUTE"


@pytest.mark.parametrize("text", ["it''s", "''", "`", ";"])
def test_texts_beside_a_windowing_function_stay_what_they_are(text):
    query = f"SELECT CONCAT('{text}', id, 'x') AS x, price FROM TABLE(TUMBLE(TABLE trades, {WINDOW}))"
    assert select(query) == {"x": computed(("trades", "id")), "price": copy("trades", "price")}


@pytest.mark.parametrize("function", ["TUMBLE", "hop", "CUMULATE", "Session"])
@pytest.mark.parametrize("table", ["trades", "`trades`"])
def test_a_windowing_function_adds_three_columns_to_those_of_its_input(function, table):
    query = f"SELECT * FROM TABLE({function}(TABLE {table}, {WINDOW})) AS w WHERE (price > 1)"
    assert select(query) == {
        **{name: copy("trades", name) for name in COLUMNS["trades"]},
        **{name: computed() for name in ("window_start", "window_end", "window_time")},
    }


@pytest.mark.parametrize("table", ["`cat`.`db`.`trades`", "db.trades", "cat.db.trades"])
def test_a_windowing_function_over_a_table_of_a_database_is_not_followed(table):
    with pytest.raises(lineage.Unknown, match="the name of trades has a database"):
        select(f"SELECT * FROM TABLE(TUMBLE(TABLE {table}, {WINDOW})) AS w")


def test_two_windowing_functions_in_one_query():
    query = (
        f"SELECT a.price, b.id, b.window_end FROM TABLE(TUMBLE(TABLE trades, {WINDOW})) AS a JOIN "
        f"TABLE(TUMBLE(DATA => TABLE orders, {WINDOW})) AS b ON a.window_start = b.window_start"
    )
    assert select(query) == {"price": copy(*PRICE), "id": copy(*ID), "window_end": computed()}


FORM = "it isn't one CREATE TABLE … AS or INSERT INTO with a query"
STAR = "the columns of a * in its query can't be known"
MATCH = "its list of columns doesn't match its query"


@pytest.mark.parametrize(
    ("create", "why"),
    [
        ("", FORM),
        (";", FORM),
        ("CREATE TABLE made (a STRING)", FORM),
        ("SELECT id FROM orders", FORM),
        ("DROP TABLE made", FORM),
        ("CREATE TABLE made AS SELECT id FROM orders; SELECT 1", FORM),
        ("INSERT INTO made (a) VALUES (1)", FORM),
        ("CREATE TABLE made AS SELECT 'unfinished", "its text can't be read as SQL"),
        ("INSERT INTO made SELECT id FROM orders", "it inserts by position, without a list of columns"),
        (
            "INSERT INTO made WITH x AS (SELECT id FROM orders) SELECT id FROM x",
            "it inserts by position, without a list of columns",
        ),
        ("CREATE TABLE made (a, b) AS SELECT id FROM orders", MATCH),
        ("CREATE TABLE made (a) AS SELECT id FROM orders", MATCH),
        ("INSERT INTO made (a, b) SELECT id FROM orders", MATCH),
        ("INSERT INTO made (a) SELECT id, party FROM orders", MATCH),
        ("CREATE TABLE made AS SELECT * FROM nowhere", STAR),
        ("CREATE TABLE made AS SELECT n.* FROM nowhere n", STAR),
        ("CREATE TABLE made AS SELECT party.a.* FROM orders", STAR),
        (
            "CREATE TABLE made AS SELECT id, party FROM orders UNION ALL SELECT id FROM trades",
            "the branches of a UNION differ",
        ),
        (
            f"CREATE TABLE made AS SELECT * FROM TABLE(TUMBLE(trades, {WINDOW}))",
            "the input of its windowing function can't be read",
        ),
        ("CREATE TABLE made AS SELECT * FROM TABLE(TUMBLE TABLE)", STAR),
        (
            "CREATE TABLE made AS SELECT s.nothing AS x FROM (SELECT id FROM orders) s",
            "its query can't be read (OptimizeError)",
        ),
        ("CREATE TABLE made AS DROP TABLE orders", "its query can't be followed"),
        ("CREATE TABLE made AS INSERT INTO x SELECT id FROM orders", "its query can't be followed"),
        ("CREATE TABLE made AS SELECT FROM WHERE", "its query can't be read (ParseError)"),
    ],
)
def test_why_a_statement_cannot_be_followed(create, why):
    with pytest.raises(Unknown) as unknown:
        trace(create)
    assert str(unknown.value) == why


@pytest.mark.parametrize(
    ("create", "expected"),
    [
        ("CREATE TABLE made AS SELECT id FROM orders;;", {"id": copy(*ID)}),
        (
            "CREATE TABLE made (party, id) AS SELECT id, party FROM orders",
            {"id": copy(*ID), "party": copy(*PARTY)},
        ),
        ("INSERT INTO made (a, `b c`) SELECT id, party FROM orders", {"a": copy(*ID), "b c": copy(*PARTY)}),
        ("INSERT INTO made (a) (SELECT id FROM orders)", None),
        ("CREATE TABLE made WITH ('a' = '(b)') AS SELECT id FROM orders", {"id": copy(*ID)}),
        ("CREATE TABLE made PARTITIONED BY (id) AS SELECT id FROM orders", {"id": copy(*ID)}),
        (
            "CREATE TABLE made DISTRIBUTED INTO 3 BUCKETS AS SELECT (id) AS id FROM orders",
            {"id": computed(ID)},
        ),
    ],
)
def test_which_names_the_columns_get(create, expected):
    if expected is None:
        with pytest.raises(Unknown, match="with a query"):
            trace(create)
    else:
        assert trace(create) == expected


@pytest.mark.parametrize(
    ("create", "creates", "queries"),
    [
        ("CREATE TABLE made AS SELECT 1", True, True),
        ("CREATE TABLE made (a STRING) WITH ('a' = 'b')", True, False),
        ("CREATE TABLE `made` (`a` STRING)", True, False),
        ("INSERT INTO made (a) SELECT 1", False, True),
        ("INSERT INTO made (a) WITH x AS (SELECT 1) SELECT * FROM x", False, True),
        ("INSERT INTO made (a) VALUES (1)", False, False),
        ("SELECT 1", False, False),
    ],
)
def test_which_statements_create_a_table_and_which_fill_it(create, creates, queries):
    assert lineage.is_create_table(create) is creates
    assert lineage.has_query(create) is queries


def test_a_text_that_is_no_sql_may_have_a_query():
    assert lineage.has_query("CREATE TABLE made AS SELECT 'unfinished") is True


def test_what_is_computed_is_no_window_column_whatever_its_name():
    null = sqlglot.parse_one("CAST(NULL AS TIMESTAMP)")
    assert lineage.is_window_column("window_time", null)
    assert not lineage.is_window_column("other", null)
    assert not lineage.is_window_column("window_time", sqlglot.parse_one("CAST(a AS TIMESTAMP)"))
    assert not lineage.is_window_column("window_time", sqlglot.parse_one("NULL"))


def test_names_that_people_see_have_no_more_quotation_marks_than_they_need():
    scope = lineage.build_query_scope("SELECT CAST(party AS STRUCT<a: INT>), id FROM orders", COLUMNS.get)
    assert scope.expression.selects[0].unalias().to.sql() == "STRUCT<a INT>"
    assert scope.expression.selects[1].sql() == "orders.id AS id"


def schema(topic, *fields):
    document = {"type": "record", "name": "R", "fields": list(fields)}
    return topic_schema.from_avro(document, topic)


def field(name, kind="string", **more):
    return {"name": name, "type": kind, **more}


def test_which_fields_are_personal_because_of_what_they_are_computed_from():
    tagged = {"confluent:tags": ["PII"]}
    party = {"type": "record", "name": "P", "fields": [field("code", **tagged), field("n", "int")]}
    sources = {"orders": schema("orders", field("id"), field("party", party))}
    whole = {"type": "record", "name": "Q", "fields": [field("code"), field("n")]}
    made = schema(
        "made",
        field("plain"),
        field("whole", whole),
        field("text"),
        field("lost"),
        field("gone"),
        field("far"),
        field("odd"),
    )
    origins = {
        "plain": copy("orders", "id"),
        "whole": copy("orders", "party"),
        "text": computed(("orders", "party"), ("orders", "id")),
        "gone": copy("orders", "nothing"),
        "far": copy("elsewhere", "x"),
        "odd": computed(("orders", "party"), unknown="a subquery computes it"),
    }
    found = lineage.find_copied_fields(made, origins, sources.get, "create.sql")
    because = "create.sql computes it from orders.party.code, which is personal"
    assert {path: finding.why for path, finding in found.items()} == {
        "whole.code": because,
        "text": because,
        "lost": "create.sql doesn't show which fields it comes from: it is not among the columns of the query",
        "gone": "create.sql computes it from orders.nothing, which isn't in the schema of orders",
        "far": "create.sql computes it from elsewhere, whose schema isn't known",
        "odd": "create.sql doesn't show which fields it comes from: a subquery computes it",
    }
    assert not any(finding.only_as_text for finding in found.values())


def test_a_text_beside_something_personal_stays_one_where_it_is_copied_to():
    tagged = {"confluent:tags": ["PII"]}
    fields = [field("area"), field("code", "int", **tagged), field("remark")]
    parcel = {"type": "record", "name": "Parcel", "fields": fields}
    source = schema("orders", field("parcel", parcel))
    assert source.personal["parcel.remark"].only_as_text
    found = lineage.find_copied_fields(
        schema("made", *(field(name, "int") for name in ("area", "code", "both", "all", "far"))),
        {
            "area": copy("orders", "parcel.area"),
            "code": copy("orders", "parcel.code"),
            "both": computed(
                ("orders", "parcel.area"), ("orders", "parcel.code"), ("orders", "parcel.remark")
            ),
            "all": computed(("orders", "parcel")),
            "far": computed(("elsewhere", "x"), ("orders", "parcel.code"), ("orders", "parcel.remark")),
        },
        {"orders": source}.get,
        "create.sql",
    )
    because = "create.sql computes it from orders.parcel.{}, which is personal"
    assert found == {
        "area": Finding(because.format("area"), only_as_text=True),
        **{name: Finding(because.format("code")) for name in ("code", "both", "all", "far")},
    }
