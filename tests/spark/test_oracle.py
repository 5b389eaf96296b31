"""weekly_sales equals an independent SQL query in DuckDB over the same events, cell by cell, and every reader
reads the same.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import duckdb
import frictionless
import pandas as pd
import pytest
from pyarrow import csv as arrow_csv

from glue_jobs.delivery.csv import unguarded
from simulators.data.events import read_json_lines, to_records
from simulators.data.generators import SalesMix, generate_sales_orders
from tests.support import oracles
from tests.support.lake import AS_OF, ROOT, SALES

RETAIL = ROOT.parent / "shared" / "data" / "online_retail_10k.csv"
COUNTRIES = {
    "Australia": "AU", "Belgium": "BE", "EIRE": "IE", "France": "FR", "Germany": "DE", "Italy": "IT",
    "Japan": "JP", "Lithuania": "LT", "Netherlands": "NL", "Norway": "NO", "Poland": "PL", "Portugal": "PT",
    "Spain": "ES", "Switzerland": "CH", "United Kingdom": "GB",
}  # fmt: skip
MIX = SalesMix(orders=400, customers=80, amended=0.1, duplicates=0.05, late=0.05, guests=0.05, awkward=0.1)
RETAIL_ORDERS = """
CREATE VIEW orders AS
WITH numbered AS (SELECT *, row_number() OVER () AS number FROM read_csv($file, header = true, all_varchar = true)),
lines AS (SELECT *, row_number() OVER (PARTITION BY InvoiceNo ORDER BY number) AS line_no FROM numbered)
SELECT InvoiceNo AS order_id, 'web' AS channel, 1 AS store_id,
    (arg_min(InvoiceDate, number)::TIMESTAMP AT TIME ZONE 'Europe/London') AT TIME ZONE 'UTC' AS ordered_at,
    CASE WHEN InvoiceNo LIKE 'C%' OR min(Quantity::INTEGER) < 0 THEN 'returned' ELSE 'accepted' END AS status,
    'GBP' AS currency, NULL AS coupon_code,
    {'customer_id': regexp_replace(arg_min(CustomerID, number), '[.]0$', ''), 'email': NULL::VARCHAR, 'phone': NULL::VARCHAR,
     'region': arg_min(Country, number), 'registered_at': NULL::TIMESTAMP} AS customer,
    {'postal_code': NULL::VARCHAR, 'country': $countries[arg_min(Country, number)]} AS ship_to,
    list({'line_no': line_no, 'product_id': StockCode, 'product': Description, 'category': NULL::VARCHAR,
          'quantity': Quantity::INTEGER, 'unit_price': UnitPrice::DECIMAL(12, 4), 'discount': 0::DECIMAL(5, 4)} ORDER BY number)
        AS order_lines,
    0 AS kafka_timestamp, 0 AS kafka_offset, 0 AS kafka_partition
FROM lines GROUP BY InvoiceNo
"""


def plain(content):
    """Return the rows of a file without the guard against formulas."""
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    return [[unguarded(cell) for cell in row] for row in rows[1:]]


@pytest.mark.slow
@pytest.mark.skipif(
    not RETAIL.exists(), reason="the Online Retail sample is not beside the repository (../shared/data)"
)
def test_a_week_of_real_invoices(lake, tmp_path):
    """Each invoice is one event, read from a file of JSON lines as users provide it."""
    listed = ", ".join(f"'{name}': '{code}'" for name, code in COUNTRIES.items())
    file = tmp_path / "orders.jsonl"
    with oracles.connect() as database:
        database.execute(
            RETAIL_ORDERS.replace("$countries", f"MAP {{{listed}}}").replace("$file", f"'{RETAIL}'")
        )
        time = "strftime(ordered_at, '%Y-%m-%dT%H:%M:%SZ') AS ordered_at"
        events = (
            "SELECT md5(order_id) AS event_id, * EXCLUDE (kafka_timestamp, kafka_offset, kafka_partition) "
            f"REPLACE ({time})"
        )
        database.execute(f"COPY ({events} FROM orders) TO '{file}' (FORMAT json)")
        values = read_json_lines(file, SALES)
        lake.flow.materialise(SALES, to_records(SALES, values, datetime(2010, 12, 6, tzinfo=UTC)), commits=3)
        run = lake.export(
            "weekly_sales", "--first-day", "2010-11-29", as_of=datetime(2010, 12, 6, 6, tzinfo=UTC)
        )
        expected = oracles.cells(database, oracles.WEEKLY_SALES, "2010-11-28 23:00:00", "2010-12-05 23:00:00")
    assert plain(run.csv()) == expected
    assert len(expected) == 10_000


@pytest.fixture(scope="module")
def generated(lakes, tmp_path_factory):
    """Run the export over two weeks of generated sales. Return it with the events as a file for DuckDB."""
    lake = lakes()
    records = generate_sales_orders(
        MIX, seed=11, start=datetime(2024, 2, 26, tzinfo=UTC), end=datetime(2024, 3, 11, tzinfo=UTC)
    )
    lake.flow.materialise(SALES, records, commits=4, compact_every=3)
    file = tmp_path_factory.mktemp("events") / "orders.json"
    with file.open("w") as lines:
        for record in records:
            about = {
                "kafka_timestamp": record.timestamp,
                "kafka_offset": record.offset,
                "kafka_partition": record.partition,
            }
            lines.write(json.dumps(record.value | about, default=_text) + "\n")
    return lake.export("weekly_sales", "--first-day", "2024-02-26", as_of=AS_OF), file


def _text(value):
    return value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else str(value)


@pytest.mark.slow
@pytest.mark.cluster
def test_two_weeks_of_generated_sales(generated):
    run, file = generated
    with oracles.connect() as database:
        columns = ", ".join(f"{name}: '{type_}'" for name, type_ in oracles.ORDERS.items())
        database.execute(
            f"CREATE VIEW orders AS FROM read_json('{file}', format = 'newline_delimited', columns = "
            f"{{{columns}}})"
        )
        weeks = {
            "2024-W09": ("2024-02-25 23:00:00", "2024-03-03 23:00:00"),
            "2024-W10": ("2024-03-03 23:00:00", "2024-03-10 23:00:00"),
        }
        for label, bounds in weeks.items():
            expected = oracles.cells(database, oracles.WEEKLY_SALES, *bounds)
            assert plain(run.csv(label)) == expected
            assert len(expected) > 400


@pytest.mark.slow
def test_every_reader_reads_the_same(generated, tmp_path):
    run, _ = generated
    content = run.csv("2024-W10")
    file = tmp_path / "sales.csv"
    file.write_bytes(content)
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    pandas = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    assert (list(pandas.columns), pandas.to_numpy().tolist()) == (header, rows)
    options = {
        "parse": arrow_csv.ParseOptions(newlines_in_values=True),
        "convert": arrow_csv.ConvertOptions(column_types=dict.fromkeys(header, "string")),
    }
    arrow = arrow_csv.read_csv(file, parse_options=options["parse"], convert_options=options["convert"])
    assert (arrow.column_names, [list(row.values()) for row in arrow.to_pylist()]) == (header, rows)
    duck = duckdb.execute(
        f"FROM read_csv('{file}', header = true, all_varchar = true, delim = ',', quote = '\"', escape = "
        "'\"')"
    )
    assert [name for name, *_ in duck.description] == header
    assert [["" if cell is None else cell for cell in row] for row in duck.fetchall()] == rows
    assert any("\n" in cell for row in rows for cell in row)


@pytest.mark.slow
def test_the_data_package_describes_the_file(generated, tmp_path):
    run, _ = generated
    folder = run.manifest("2024-W10")["files"][0]["key"].rpartition("/")[0]
    for key in run.lake.keys(folder):
        (tmp_path / key.rpartition("/")[2]).write_bytes(run.lake.read(key))
    report = frictionless.validate(str(tmp_path / "datapackage.json"))
    assert report.valid, report.flatten(["type", "note"])
    (data,) = tmp_path.glob("*.csv")
    data.write_bytes(data.read_bytes().replace(b",EUR,", b",,", 1))
    assert not frictionless.validate(str(tmp_path / "datapackage.json")).valid
