"""The job's arguments: what they are parsed to, and all mistakes in one message."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from glue_jobs.arguments import Arguments, is_run_of_glue, parse
from glue_jobs.errors import BadInput
from glue_jobs.platform import ARGUMENTS, DEFAULT_ARGUMENTS, REQUIRED_ARGUMENTS

NOW = datetime(2026, 11, 16, 7, tzinfo=UTC)
LEAST = [
    "--export",
    "weekly_sales",
    "--as-of",
    "2026-11-16T06:00:00Z",
    "--database",
    "lkc-1",
    "--bucket",
    "exports-1",
]


def problems_of(*words: str) -> str:
    with pytest.raises(BadInput) as bad:
        parse(words, now=NOW)
    assert (bad.value.code, bad.value.exit_code) == ("EXP-ARGUMENTS", 2)
    return bad.value.what


def test_required_arguments_only():
    assert parse(LEAST, now=NOW) == Arguments(
        export="weekly_sales",
        as_of=datetime(2026, 11, 16, 6, tzinfo=UTC),
        database="lkc-1",
        bucket="exports-1",
        prefix="exports",
        warehouse="s3://exports-1/warehouse",
        aggregates_database="lakeferry",
        pseudonym_secret="",
        time_limit=timedelta(hours=1),
        table="",
        first_day=None,
        dry_run=False,
        accept_fewer_events=False,
        region="",
        probe=False,
        prepare_table=False,
        accept_window_change=False,
        partitions=0,
        complete_until=None,
        tableflow_secret="",
        catalog_uri="",
        proxy="",
        windows="",
        only="",
        job_run_id=None,
    )


def test_all_arguments():
    more = {
        "prefix": "//team/salex/",
        "warehouse": "s3://lake/own",
        "aggregates-database": "sums",
        "pseudonym-secret": "arn:aws:secretsmanager:eu-central-1:1:secret:x",
        "time-limit-minutes": "10080",
        "table": "orders",
        "first-day": "2026-11-02",
        "dry-run": "true",
        "accept-fewer-events": "true",
        "region": "eu-central-1",
        "probe": "true",
        "prepare-table": "true",
        "accept-window-change": "true",
        "partitions": "12",
        "complete-until": "2026-11-16T05:00:00+01:00",
        "tableflow-secret": "shop/tableflow",
        "catalog-uri": "https://example.com/iceberg",
        "proxy": "http://proxy.example.com:3128",
        "windows": "2026-W40..W44",
        "only": "missing",
    }
    assert more.keys() | {*REQUIRED_ARGUMENTS} == ARGUMENTS.keys()
    assert more.keys() == DEFAULT_ARGUMENTS.keys()
    found = parse([*LEAST, *(f"--{name}={value}" for name, value in more.items())], now=NOW)
    assert found == Arguments(
        export="weekly_sales",
        as_of=datetime(2026, 11, 16, 6, tzinfo=UTC),
        database="lkc-1",
        bucket="exports-1",
        prefix="team/salex",
        warehouse="s3://lake/own",
        aggregates_database="sums",
        pseudonym_secret=more["pseudonym-secret"],
        time_limit=timedelta(days=7),
        table="orders",
        first_day=date(2026, 11, 2),
        dry_run=True,
        accept_fewer_events=True,
        region="eu-central-1",
        probe=True,
        prepare_table=True,
        accept_window_change=True,
        partitions=12,
        complete_until=datetime(2026, 11, 16, 4, tzinfo=UTC),
        tableflow_secret="shop/tableflow",
        catalog_uri=more["catalog-uri"],
        proxy=more["proxy"],
        windows="2026-W40..W44",
        only="missing",
        job_run_id=None,
    )


SWITCHES = {
    "dry-run": "dry_run",
    "accept-fewer-events": "accept_fewer_events",
    "accept-window-change": "accept_window_change",
    "probe": "probe",
    "prepare-table": "prepare_table",
}


@pytest.mark.parametrize("name", SWITCHES)
def test_each_switch_is_its_own(name):
    found = parse([*LEAST, f"--{name}", "true"], now=NOW)
    assert {field for field in SWITCHES.values() if getattr(found, field)} == {SWITCHES[name]}
    assert parse([*LEAST, f"--{name}=false"], now=NOW) == parse(LEAST, now=NOW)
    assert problems_of(*LEAST, f"--{name}=yes") == f"--{name} is 'yes'; say true or false"


def test_a_value_may_be_the_name_of_an_argument_and_have_any_sign():
    found = parse([*LEAST, "--table", "region", "--windows", "a=b", "--proxy=http://x?y=z"], now=NOW)
    assert (found.table, found.region) == ("region", "")
    assert (found.windows, found.proxy) == ("a=b", "http://x?y=z")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--JOB_RUN_ID", "jr_1"], True),
        (["--JOB_RUN_ID=jr_1", *LEAST], True),
        ([*LEAST, "--JOB_RUN_ID"], False),
        (["--JOB_RUN_ID="], False),
        (["JOB_RUN_ID", "jr_1"], False),
        (LEAST, False),
        ([], False),
    ],
)
def test_a_run_of_glue_has_the_id_that_glue_gives(words, expected):
    assert is_run_of_glue(words) is expected
    assert (parse([*LEAST, *words], now=NOW).job_run_id is not None) == expected


@pytest.mark.parametrize(
    ("name", "most", "field"),
    [("time-limit-minutes", 10_080, "time_limit"), ("partitions", 100_000, "partitions")],
)
def test_a_number_is_whole_and_within_its_limits(name, most, field):
    def number(text: str) -> int:
        value = getattr(parse([*LEAST, f"--{name}={text}"], now=NOW), field)
        return value // timedelta(minutes=1) if isinstance(value, timedelta) else value

    assert [number(text) for text in ("1", "2", "007", str(most))] == [1, 2, 7, most]
    for text in ("0", str(most + 1), "-1", "+1", "1 ", "1e3", "²", "١"):
        said = f"--{name} is {text!r}; say a whole number from 1 to {most}"
        assert problems_of(*LEAST, f"--{name}={text}") == said


@pytest.mark.parametrize("name", ["abc", "a-1", "1a9", "a" * 63])
def test_a_bucket_may_have_any_name_without_dots(name):
    assert parse([*LEAST, "--bucket", name], now=NOW).bucket == name
    assert parse([*LEAST, "--bucket", name], now=NOW).warehouse == f"s3://{name}/warehouse"


@pytest.mark.parametrize("name", ["as-of", "complete-until"])
def test_an_instant_is_at_most_five_minutes_ahead(name):
    why = {"as-of": "a window must be over", "complete-until": "nobody knows yet which events will come"}
    field = name.replace("-", "_")
    ahead = parse([*LEAST, f"--{name}=2026-11-16T07:05:00Z"], now=NOW)
    assert getattr(ahead, field) == NOW + timedelta(minutes=5)
    assert problems_of(*LEAST, f"--{name}=2026-11-16T08:05:01+01:00") == (
        f"--{name} 2026-11-16T08:05:01+01:00 is in the future (it is 2026-11-16T07:00:00Z now); {why[name]}"
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--only", "missing"], "--only needs --windows"),
        (["--only", "published"], "--only needs --windows"),
        (["--only", "old"], "--only is 'old'; say missing or published"),
        (["--only", "old", "--windows", "2026-W40"], "--only is 'old'; say missing or published"),
    ],
)
def test_only_is_one_of_two_words_and_needs_windows(words, what):
    assert problems_of(*LEAST, *words) == what


def test_arguments_that_glue_adds_are_ignored():
    words = [
        "--JOB_NAME",
        "weekly",
        *LEAST,
        "--job-bookmark-option",
        "job-bookmark-disable",
        "--TempDir",
        "s3://x",
        "rest",
    ]
    assert parse(words, now=NOW) == parse(LEAST, now=NOW)


def test_glues_id_of_the_job_run_is_kept():
    assert parse(LEAST, now=NOW).job_run_id is None
    assert parse(["--JOB_RUN_ID", "jr_1", *LEAST], now=NOW).job_run_id == "jr_1"


def test_the_last_value_counts_and_offsets_are_applied():
    found = parse([*LEAST, "--export", "daily_trades", "--as-of", "2026-11-16T07:00:00+01:00"], now=NOW)
    assert found.export == "daily_trades"
    assert found.as_of == datetime(2026, 11, 16, 6, tzinfo=UTC)


def test_all_mistakes_are_reported_together():
    message = problems_of(
        "--export=",
        "--as-of=yesterday",
        "--bucket=My.Bucket",
        "--dry-run=maybe",
        "--time-limit-minutes=0",
        "--first-day=1",
    )
    assert message.split("; ") == [
        f"--export is missing ({ARGUMENTS['export']})",
        f"--database is missing ({ARGUMENTS['database']})",
        "--as-of 'yesterday' is not a time",
        "write it like 2026-11-16T06:00:00Z",
        "--time-limit-minutes is '0'",
        "say a whole number from 1 to 10080",
        "--first-day '1' is not a day",
        "write it like 2026-01-05",
        "--dry-run is 'maybe'",
        "say true or false",
        "--bucket 'My.Bucket' is not a bucket name (lower case, digits and hyphens, no dots)",
    ]


def test_no_arguments():
    assert [part.partition(" ")[0] for part in problems_of().split("; ")] == [
        "--export",
        "--as-of",
        "--database",
        "--bucket",
    ]


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("--as-of=2026-11-16", "--as-of '2026-11-16' has no offset"),
        ("--as-of=2026-11-16T06:00:00", "has no offset; write it like 2026-11-16T06:00:00Z or …+01:00"),
        (
            "--as-of=2026-11-16T07:05:01Z",
            "is in the future (it is 2026-11-16T07:00:00Z now); a window must be over",
        ),
        ("--as-of=9999-12-31T23:59:59Z", "is in the future"),
        ("--as-of=9999-12-31T23:59:59-05:00", "is not a time"),
        ("--as-of=0001-01-01T00:00:00+05:00", "is not a time"),
        ("--as-of=2026-13-01T00:00:00Z", "is not a time"),
        ("--as-of", "--as-of is missing"),
        ("--time-limit-minutes=10081", "say a whole number from 1 to 10080"),
        ("--time-limit-minutes=1.5", "say a whole number from 1 to 10080"),
        ("--time-limit-minutes=²", "say a whole number from 1 to 10080"),
        ("--time-limit-minutes=", "say a whole number from 1 to 10080"),
        ("--partitions=0", "--partitions is '0'; say a whole number from 1 to 100000"),
        ("--partitions=six", "--partitions is 'six'; say a whole number"),
        ("--complete-until=today", "--complete-until 'today' is not a time"),
        ("--complete-until=2026-11-16T06:00:00", "--complete-until '2026-11-16T06:00:00' has no offset"),
        ("--complete-until=2026-11-16T07:05:01Z", "--complete-until 2026-11-16T07:05:01Z is in the future"),
        ("--first-day=2026-02-30", "--first-day '2026-02-30' is not a day"),
        ("--first-day=0001-01-01", "--first-day: 0001-01-01 is not a day on which windows can begin"),
        ("--first-day=9999-12-31", "--first-day: 9999-12-31 is not a day on which windows can begin"),
        ("--dry-run", "--dry-run is ''; say true or false"),
        ("--dry-run=True", "--dry-run is 'True'; say true or false"),
        ("--bucket=a", "is not a bucket name"),
        ("--bucket=-abc", "is not a bucket name"),
        ("--bucket=abc\n", "is not a bucket name"),
        ("--bucket=" + "a" * 64, "is not a bucket name"),
        ("--bucket=s3://abc", "is not a bucket name"),
    ],
)
def test_each_mistake(word, what):
    assert what in problems_of(*LEAST, word)


def test_a_clock_that_is_slightly_behind_is_accepted():
    found = parse([*LEAST, "--as-of=2026-11-16T07:05:00Z"], now=NOW)
    assert found.as_of == NOW + timedelta(minutes=5)


def test_which_of_the_windows_is_a_word_and_needs_windows():
    asked = parse([*LEAST, "--windows", "2026-W40..W44", "--only", "published"], now=NOW)
    assert (asked.windows, asked.only) == ("2026-W40..W44", "published")
    assert parse(LEAST, now=NOW).windows == ""
    wrong = problems_of(*LEAST, "--windows", "2026-W40", "--only", "old")
    assert wrong == "--only is 'old'; say missing or published"
    assert problems_of(*LEAST, "--only", "missing") == "--only needs --windows"
