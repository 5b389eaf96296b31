"""The rules of contracts between keys: each finds its mistake, with key and line."""

from __future__ import annotations

import hashlib
from datetime import date

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.exports import contracts
from config.exports.contract import Contract
from config.exports.contract_rules import fits
from config.project import PROJECT
from config.toml_model import BadFile
from tests.support import samples, shipped

#: A small valid contract. Tests replace a line, or append one.
BASE = """name = "sales"
version = 1
title = "Sales"
description = "Sales."
owner = "somebody"
grain = "one row per sale"
[source]
topic = "sales"
event_time = "at"
[window]
every = "day"
zone = "Europe/Berlin"
from = 2026-11-01
[deduplicate]
key = ["id"]
[[column]]
name = "id"
type = "text"
title = "Id"
description = "Id."
[[column]]
name = "amount"
type = "decimal(12,2)"
title = "Amount"
description = "Amount."
[delivery]
order_by = ["id"]
"""
COLUMN = '[[column]]\nname = "{name}"\ntype = "{type}"\ntitle = "T"\ndescription = "D"\n{more}\n'
MONEY = (
    BASE
    + COLUMN.format(name="currency", type="text", more="")
    + COLUMN.format(name="sales", type="decimal(12,2)", more='unit = "order currency"')
)
SALES_CHART = '[[report.chart]]\ntitle = "t"\nx = "id"\ny = "sales"\n'
AGGREGATE = (
    BASE
    + COLUMN.format(name="n", type="integer", more='measure = "count(*)"')
    + '[aggregate]\nperson_id = "person"\n'
)


def problems(text: str) -> list[tuple[str, str]]:
    """Return (key, message) of all problems. Each line must be the one that has the key."""
    with pytest.raises(BadFile) as bad:
        contracts.parse(text, name="sales.toml")
    lines = text.splitlines()
    for problem in bad.value.problems:
        last = problem.key.rpartition(".")[2].partition("[")[0]
        assert problem.line, problem
        assert last in lines[problem.line - 1], problem
    return [(problem.key, problem.message) for problem in bad.value.problems]


def with_column(name: str = "c", type_: str = "text", more: str = "") -> str:
    return BASE + COLUMN.format(name=name, type=type_, more=more)


def test_the_base_is_valid():
    contract = contracts.parse(BASE, name="sales.toml")
    assert isinstance(contract, Contract)
    assert contract.sha256 == hashlib.sha256(BASE.encode()).hexdigest()
    assert contracts.parse(AGGREGATE, name="sales.toml").aggregate.min_group_size == 10


@pytest.mark.parametrize("name", [*shipped.EXPORTS, *shipped.FLINK_EXPORTS])
def test_shipped_contracts_are_valid(name):
    text = (PROJECT / "exports" / f"{name}.toml").read_text(encoding="utf-8")
    assert contracts.load(name) == contracts.parse(text, name=name)
    assert contracts.load(name).name == name


def test_the_shipped_sales_deliver_no_readable_personal_data():
    treated = {
        column.source: column.personal.treatment
        for column in contracts.load("weekly_sales").column
        if column.personal
    }
    assert treated == {
        "customer.customer_id": "hash",
        "customer.email": "hash",
        "customer.name": "drop",
        "customer.phone": "hash",
        "customer.region": "keep",
        "customer.registered_at": "generalise",
        "ship_to.street": "drop",
        "ship_to.postal_code": "generalise",
        "ship_to.country": "keep",
    }


def pattern(name: str, text: str) -> str:
    return f"[[personal_pattern]]\nname = '{name}'\npattern = '{text}'\n"


@pytest.mark.parametrize(
    "text",
    [
        "P[0-9]{8}",
        r"\\1",
        "(?i)staff",
        r"\p{Greek}+x",
        "[(]?=a",
        "a+?b",
        "[*+]+x",
        "[[:alpha:]]+1",
        r"x\[+y",
        "a(?i)b",
    ],
)
def test_patterns_of_re2_are_accepted(text):
    assert contracts.parse(BASE + pattern("a", text), name="x.toml").personal_pattern[0].pattern == text


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        (with_column("id"), "column[0].name", "id appears 2 times"),
        (
            with_column("rows", "integer"),
            "column[2].name",
            "charts and checks use this name for the number of rows",
        ),
        (
            with_column(more='from = "a"\nexpression = "b"'),
            "column[2].expression",
            "from and expression exclude one another",
        ),
        (
            with_column(more='from = "a"\nmeasure = "count(*)"'),
            "column[2].measure",
            "from and measure exclude one another",
        ),
        (with_column(type_="decimal(39,2)"), "column[2].type", "the precision is 1 to 38"),
        (with_column(type_="decimal(2,3)"), "column[2].type", "the scale at most the precision"),
        (with_column(type_="decimal(0,0)"), "column[2].type", "the precision is 1 to 38"),
        (with_column(more='personal = { treatment = "keep" }'), "column[2].personal", "keep needs reason"),
        (with_column(more='personal = { treatment = "hash" }'), "column[2].personal", "hash needs kind"),
        (with_column(more='personal = { treatment = "mask" }'), "column[2].personal", "mask needs visible"),
        (
            with_column(more='personal = { treatment = "generalise" }'),
            "column[2].personal",
            "generalise needs to",
        ),
        (
            with_column(more='personal = { treatment = "generalise", to = "prefix" }'),
            "column[2].personal",
            "generalise needs size",
        ),
        (
            with_column(more='personal = { treatment = "drop", reason = "x" }'),
            "column[2].personal.reason",
            "drop does not use reason",
        ),
        (
            with_column("c", "integer", 'personal = { treatment = "generalise", to = "year", size = 2 }'),
            "column[2].personal.size",
            "generalise does not use size",
        ),
        (
            with_column("c", "integer", 'personal = { treatment = "hash", kind = "id" }'),
            "column[2].personal",
            'hash leaves text, but the column\'s type is integer. Write type = "text"',
        ),
        (
            with_column(more='personal = { treatment = "generalise", to = "year" }'),
            "column[2].personal",
            "generalise leaves integer",
        ),
        (
            with_column(
                "c", "decimal(3,1)", 'personal = { treatment = "generalise", to = "bucket", size = 5 }'
            ),
            "column[2].personal",
            "generalise leaves integer",
        ),
        (
            with_column(more='personal = { treatment = "drop", may_contain = ["email"] }'),
            "column[2].personal.may_contain",
            "drop does not use may_contain",
        ),
        (
            with_column(more='personal = { treatment = "keep", reason = "r", may_contain = ["mail"] }'),
            "column[2].personal.may_contain[0]",
            "mail is not a kind that the scan knows. Known are: email, phone, iban, card",
        ),
        (
            with_column(more='shows_one_person_because = "r"'),
            "column[2].shows_one_person_because",
            "only a measure in an aggregate with person_id needs this reason",
        ),
        (BASE + pattern("email", "a"), "personal_pattern[0].name", "email is a kind of the scan itself"),
        (BASE + pattern("a", "a") + pattern("a", "b"), "personal_pattern[1].name", "a appears 2 times"),
        (BASE + pattern("a", "[0-9"), "personal_pattern[0].pattern", "is not a regular expression"),
        (BASE + pattern("a", "x*"), "personal_pattern[0].pattern", "matches a text without any character"),
        (BASE + pattern("a", "(?=x)y"), "personal_pattern[0].pattern", "that RE2 doesn't have"),
        (BASE + pattern("a", "(a)x\\1"), "personal_pattern[0].pattern", "that RE2 doesn't have"),
        (
            with_column("n", "integer", 'measure = "count(*)"'),
            "column[2].measure",
            "a measure needs an [aggregate] section",
        ),
        (BASE + '[aggregate]\nperson_id = "p"\n', "aggregate", "no column is a measure"),
        (AGGREGATE.replace('person_id = "person"', ""), "aggregate", "give exactly one of `person_id`"),
        (AGGREGATE + 'no_persons_because = "none"\n', "aggregate", "give exactly one of `person_id`"),
        (
            AGGREGATE.replace(
                'measure = "count(*)"', 'measure = "count(*)"\npersonal = { treatment = "drop" }'
            ),
            "column[2].personal",
            "a measure is computed from many rows",
        ),
        (
            AGGREGATE.replace('name = "n"', 'name = "run_id"') + "keep_as_table = true\n",
            "column[2].name",
            "the table that is kept has a column run_id of its own",
        ),
        (
            BASE.replace('order_by = ["id"]', 'order_by = ["id", "x"]'),
            "delivery.order_by[1]",
            "x is not a delivered column",
        ),
        (BASE.replace('order_by = ["id"]', "order_by = []"), "delivery.order_by", "name at least one column"),
        (
            BASE + '[report]\nheadline = ["id"]\n',
            "report.headline[0]",
            "id is not a delivered numeric column",
        ),
        (BASE + '[report]\nheadline = ["x"]\n', "report.headline[0]", "x is not a delivered numeric column"),
        (
            BASE + '[[report.chart]]\ntitle = "t"\nx = "x"\ny = "rows"\n',
            "report.chart[0].x",
            "x is not a delivered column",
        ),
        (
            BASE + '[[report.chart]]\ntitle = "t"\nx = "id"\ny = "id"\n',
            "report.chart[0].y",
            "id is neither rows nor",
        ),
        (
            MONEY + '[report]\nheadline = ["sales"]\n',
            "report.headline[0]",
            "sales may add up several currencies. Name the column that holds the currency by per",
        ),
        (
            MONEY.replace('unit = "order currency"\n', "") + '[report]\nheadline = ["sales"]\n',
            "report.headline[0]",
            "may add up",
        ),
        (with_column(more="adds_up = true"), "column[2].adds_up", "c is not a number. Remove adds_up"),
        (
            AGGREGATE.replace('type = "decimal(12,2)"', 'type = "decimal(12,2)"\nadds_up = true'),
            "column[1].adds_up",
            "amount is a column by which rows are grouped, so it does not add up",
        ),
        (
            with_column("price", "integer", "adds_up = false") + '[report]\nheadline = ["amount", "price"]\n',
            "report.headline[1]",
            "price does not add up: the contract says so",
        ),
        (
            with_column("price", "integer", "adds_up = false") + SALES_CHART.replace("sales", "price"),
            "report.chart[0].y",
            "price does not add up: the contract says so",
        ),
        (
            AGGREGATE + '[report]\nheadline = ["n", "amount"]\n',
            "report.headline[1]",
            "amount does not add up: it is a column by",
        ),
        (
            with_column("since", "integer", 'personal = { treatment = "generalise", to = "year" }')
            + '[report]\nheadline = ["since"]\n',
            "report.headline[0]",
            "since does not add up: its values are generalised",
        ),
        *(
            (
                with_column("x", "integer", f'unit = "{unit}"') + '[report]\nheadline = ["x"]\n',
                "report.headline[0]",
                f"x does not add up: its unit is {unit}. If its values may be added, write adds_up = true",
            )
            for unit in ("%", "share", "°C", "EUR/kg", "km per hour")
        ),
        (MONEY + SALES_CHART, "report.chart[0].y", "sales may add up several currencies"),
        (
            MONEY + 'per = "currency"\n' + SALES_CHART,
            "report.chart[0]",
            'varies by currency. Choose one, such as only = "EUR"',
        ),
        (
            MONEY.replace("order currency", "EUR") + SALES_CHART + 'only = "EUR"\n',
            "report.chart[0].only",
            "does not vary",
        ),
        (MONEY + 'per = "nothing"\n', "column[3].per", "nothing is not a delivered column of text"),
        (MONEY + 'per = "amount"\n', "column[3].per", "amount is not a delivered column of text"),
        (
            BASE + '[[check]]\nid = "a"\nseverity = "warn"\nmessage = "m"\n',
            "check[0]",
            "needs exactly one of",
        ),
        (
            BASE
            + (
                '[[check]]\nid = "a"\nseverity = "warn"\nmessage = "m"\neach_row = "id > 1"\noverall = '
                '"rows > 0"\n'
            ),
            "check[0]",
            "needs exactly one of each_row, overall and compare",
        ),
        (
            BASE + '[[check]]\nid = "a"\nseverity = "warn"\nmessage = "m"\noverall = "rows > 0"\n' * 2,
            "check[0].id",
            "a appears 2 times",
        ),
        (
            BASE.replace('[deduplicate]\nkey = ["id"]\n', "").replace(
                'every = "day"', 'every = "day"\nfilter_stage = "after_deduplication"'
            ),
            "window.filter_stage",
            "there is no [deduplicate] section",
        ),
        (BASE.replace('key = ["id"]', "key = []"), "deduplicate.key", "name at least one field"),
        (
            BASE + '[[filter]]\nwhere = "true"\nreason = "r"\non = "lines"\n',
            "filter[0].on",
            "there is no [explode] section, so there are no lines",
        ),
        (
            BASE.replace("Europe/Berlin", "Berlin"),
            "window.zone",
            "'Berlin' is not a time zone of the tz database",
        ),
        (BASE.replace("Europe/Berlin", "Europe/Berln"), "window.zone", "Did you mean Europe/Berlin?"),
        (
            BASE.replace("Europe/Berlin", "Europe"),
            "window.zone",
            "'Europe' is not a time zone of the tz database",
        ),
        (
            BASE.replace("Europe/Berlin", "../x"),
            "window.zone",
            "'../x' is not a time zone of the tz database",
        ),
        (
            BASE.replace("2026-11-01", "0001-01-01"),
            "window.from",
            "0001-01-01 is not a day on which windows can begin",
        ),
        (
            BASE.replace("2026-11-01", "9999-12-31"),
            "window.from",
            "9999-12-31 is not a day on which windows can begin",
        ),
        (
            with_column(type_="integer", more='allowed = ["1", "x"]'),
            "column[2].allowed[1]",
            "'x' is not how integer values are written",
        ),
        (BASE + 'null_text = "0"\n', "delivery.null_text", "'0' is also a value of amount (decimal(12,2))"),
    ],
)
def test_each_rule_finds_its_mistake(text, key, message):
    found = problems(text)
    assert [path for path, _ in found if path == key], found
    assert any(message in result for path, result in found if path == key), found
    assert len({path.partition(".")[0].partition("[")[0] for path, _ in found}) == 1


def test_a_contract_without_delivered_columns():
    dropped = BASE.replace(
        'description = "Id."', 'description = "Id."\npersonal = { treatment = "drop" }'
    ).replace('description = "Amount."', 'description = "Amount."\npersonal = { treatment = "drop" }')
    with pytest.raises(BadFile, match="no column is delivered") as bad:
        contracts.parse(dropped, name="sales.toml")
    assert "delivery.order_by[0]" in {problem.key for problem in bad.value.problems}


def test_an_aggregate_needs_a_grouping_column():
    measures = BASE.partition("[[column]]")[0] + COLUMN.format(
        name="n", type="integer", more='measure = "count(*)"'
    )
    whole = measures + '[aggregate]\nno_persons_because = "none"\n[delivery]\norder_by = ["n"]\n'
    with pytest.raises(BadFile, match="there is nothing to group by"):
        contracts.parse(whole, name="sales.toml")


@pytest.mark.parametrize(
    ("null_text", "nullable", "is_reported"), [("", True, True), ("-", True, False), ("", False, False)]
)
def test_null_in_a_file_of_one_column_needs_a_text(null_text, nullable, is_reported):
    text = BASE.partition("[[column]]")[0] + COLUMN.format(
        name="id", type="text", more=f"nullable = {str(nullable).lower()}"
    )
    text += f'[delivery]\norder_by = ["id"]\nnull_text = "{null_text}"\n'
    if is_reported:
        assert problems(text)[0][0] == "delivery.null_text"
    else:
        assert contracts.parse(text, name="sales.toml").delivery.null_text == null_text


def test_mistakes_of_form_and_of_rules_are_reported_together():
    text = with_column("id", more='personal = { treatment = "hash" }').replace("version = 1", "version = 0")
    assert [key for key, _ in problems(text)] == [
        "version",
        "column[0].name",
        "column[2].name",
        "column[2].personal",
    ]


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        (
            "integer",
            ["0", "-7", "007", str(2**63 - 1), str(-(2**63))],
            ["", "x", "1.0", "+1", "1_0", "٣", str(2**63), str(-(2**63) - 1), "0" * 20],
        ),
        (
            "decimal(5,2)",
            ["1", "-1.5", "999.99", "0.100", "001"],
            ["", "1000", "0.001", "1e2", ".5", "5.", "NaN", "١"],
        ),
        ("decimal(2,2)", ["0.99", "0"], ["1", "1.00"]),
        (
            "date",
            ["0001-01-01", "9999-12-31", "2024-02-29"],
            ["2023-02-29", "20240101", "2024-W01-1", "", "2024-1-1"],
        ),
        (
            "timestamp",
            ["2026-11-09T13:05:00.000000Z"],
            [
                "2026-11-09T13:05:00Z",
                "2026-11-09 13:05:00.000000Z",
                "2026-11-09T25:05:00.000000Z",
                "2026-11-09",
            ],
        ),
        ("boolean", ["true", "false"], ["True", "1", ""]),
        ("text", ["", "=1", "anything"], []),
    ],
)
def test_how_values_are_written(type_, good, bad):
    assert [text for text in good if not fits(type_, text)] == []
    assert [text for text in bad if fits(type_, text)] == []


@given(st.integers(1, 38), st.data())
def test_every_decimal_that_a_column_can_hold_is_allowed(precision, data):
    scale = data.draw(st.integers(0, precision))
    value = data.draw(
        st.decimals(places=scale, min_value=-(10 ** (precision - scale)), max_value=10 ** (precision - scale))
    )
    assert fits(f"decimal({precision},{scale})", f"{value:f}") == (abs(value) < 10 ** (precision - scale))


def test_a_contract_is_found_by_name_or_path(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(BASE)
    assert contracts.load(str(file)).name == "sales"
    with pytest.raises(BadFile, match=r"no export of this name. project/exports/ has: .*daily_trades, "):
        contracts.load("unheard_of")
    with pytest.raises(BadFile, match=r"cannot be read: .*No such file"):
        contracts.load(str(tmp_path / "none.toml"))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadFile, match="cannot be read: it is not UTF-8"):
        contracts.load(str(file))


def test_which_fields_a_column_reads_and_delivers():
    columns = {column.name: column for column in samples.contract(samples.TRADES).column}
    assert columns["hour"].field is None
    assert columns["side"].field == "side"
    assert [column.numeric for column in columns.values()] == [False, False, True, False]


def test_a_contract_may_say_that_numbers_add_up_although_their_unit_or_treatment_suggests_otherwise():
    known = 'adds_up = true\nunit = "%"\npersonal = { treatment = "generalise", to = "bucket", size = 5 }'
    text = with_column("x", "integer", known) + '[report]\nheadline = ["x"]\n'
    assert contracts.parse(text, name="x.toml").report.headline == ["x"]


@pytest.mark.parametrize("unit", ["persons", "EUR", "pieces", "USD million", "shares", "ratios sold"])
def test_units_of_amounts_add_up(unit):
    text = with_column("x", "integer", f'unit = "{unit}"') + '[report]\nheadline = ["x"]\n'
    assert contracts.parse(text, name="x.toml").report.headline == ["x"]


def test_the_first_valid_day_is_two_years_before_the_first_window_or_as_set():
    plain = contracts.load("weekly_sales")
    assert plain.source.min_event_date is None
    assert plain.min_event_date == plain.window.first.replace(year=plain.window.first.year - 2)
    leap = attrs.evolve(plain, window=attrs.evolve(plain.window, first=date(2024, 2, 29)))
    assert leap.min_event_date == date(2022, 2, 28)
    assert leap.starting_by(date(2020, 3, 1)).min_event_date == date(2018, 3, 1)
    assert leap.starting_by(date(2025, 3, 1)) == leap
    fixed = attrs.evolve(leap, source=attrs.evolve(leap.source, min_event_date=date(1970, 1, 1)))
    assert fixed.starting_by(date(2020, 3, 1)) == fixed
    assert fixed.min_event_date == date(1970, 1, 1)
