"""The check, the simulator and the job agree: on what a schema means, and on which expressions a contract may
have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from config.exports import check
from config.exports.allowed_functions import AGGREGATE, SCALAR
from config.exports.avro_schema import BadSchema
from config.exports.contracts import parse
from config.exports.table_columns import list_spark_columns
from config.exports.topic_schema import TopicSchema, from_avro
from config.toml_model import BadFile
from glue_jobs.errors import BadInput
from glue_jobs.table_fields import metadata_columns
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.topic import Topic
from tests.support.avro_schemas import AvroTypes
from tests.support.expression_samples import EVENT, FIELDS, OTHERS, every_expression
from tests.support.lake import column, contract, topic_of

#: How many generated types are tried, and how many of them share a table.
TYPES = 1_000
OF_TABLE = 60
#: How many tests share the expressions. Each part has expressions of every kind.
PARTS = 5
TIMES = ("time-millis", "time-micros")


def record(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": "Event", "fields": fields}


def read_both(schema: dict[str, Any]) -> tuple[TopicSchema | str, Topic | str]:
    """Return what the check and the simulator make of a schema, or why they refuse it."""
    try:
        checked: TopicSchema | str = from_avro(schema, "things")
    except BadSchema as refused:
        checked = str(refused)
    try:
        written: Topic | str = Topic("things", schema)
    except SchemaError as refused:
        written = str(refused)
    return checked, written


@pytest.fixture(scope="module")
def generated() -> list[dict[str, Any]]:
    return list(AvroTypes(seed=20261126).fields(TYPES))


def test_the_check_and_the_simulator_accept_the_same_schemas(generated):
    answers = {str(field["type"]): read_both(record([field])) for field in generated}
    differing = {
        type_: both for type_, both in answers.items() if isinstance(both[0], str) != isinstance(both[1], str)
    }
    assert differing == {}
    refused = sum(isinstance(checked, str) for checked, _ in answers.values())
    assert 200 < refused < len(answers) - 200, "the generator makes enough of both"


def test_spark_sees_the_fields_and_types_that_the_check_expects(generated, lakes):
    readable = [field for field in generated if is_readable(field)]
    assert len(readable) > 300
    lake = lakes()
    for number, fields in enumerate(batches(readable)):
        schema = record(fields)
        name = f"things_{number}"
        lake.flow.create_table(Topic(name, schema))
        table = lake.spark.table(f"lake.`{lake.target.database}`.{name}")
        names = metadata_columns(table.columns)
        assert described(table.schema.jsonValue(), names) == described(
            list_spark_columns(from_avro(schema, name)), names
        ), fields


def is_readable(field: dict[str, Any]) -> bool:
    """Return whether Spark can read a table with the field."""
    checked, _ = read_both(record([field]))
    return not isinstance(checked, str) and not any(item.kind in TIMES for item in checked.fields.values())


def batches(fields: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for first in range(0, len(fields), OF_TABLE):
        yield fields[first : first + OF_TABLE]


def described(type_: Any, names: dict[str, str]) -> Any:
    """Return Spark's description of a type without comments, and with Kafka's metadata as expressions name
    it.
    """
    if isinstance(type_, dict):
        return {key: described(value, names) for key, value in type_.items() if key != "metadata"}
    if isinstance(type_, list):
        return [described(value, names) for value in type_]
    return names.get(type_, type_)


@pytest.fixture(scope="module")
def lake(lakes):
    lake = lakes()
    lake.commit(topic_of(*FIELDS), EVENT)
    return lake


def of_expressions(*expressions: str) -> str:
    """Return a contract with the value of each expression as text, so that its type doesn't matter."""
    computed = [
        column(f"c{number}", expression=expression, nullable=True)
        for number, expression in enumerate(expressions)
    ]
    kept = {"treatment": "keep", "reason": "made up"}
    return contract(column("id"), *(made | {"personal": kept} for made in computed), deduplicate=None)


def refused_by_check(text: str, judge) -> set[str]:
    schema = from_avro(topic_of(*FIELDS).schema, "things")
    try:
        parse(text, name="things.toml", more_rules=check.rules(schema, judge))
    except BadFile as bad:
        return {problem.key.partition(".")[0] for problem in bad.problems}
    return set()


def refused_by_job(lake, expressions: list[str]) -> set[str]:
    """Return the columns that the job refuses.

    It first refuses what no contract may have, before it reads the table.
    """
    text = of_expressions(*expressions)
    try:
        (window,) = lake.export(text, "--dry-run", "true").record.windows
        reason = str(window.get("reason", ""))
    except BadInput as refused:
        reason = refused.what
    return {f"column[{number + 1}]" for number in range(len(expressions)) if f"column c{number}: " in reason}


def all_expressions() -> list[str]:
    return [f"cast(({text}) as string)" for text in every_expression()] + OTHERS


def test_there_are_a_few_hundred_expressions():
    assert len(all_expressions()) > 300


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_check_and_the_job_refuse_the_same_expressions(lake, judge, part):
    expressions = all_expressions()[part::PARTS]
    left = list(expressions)
    refused_by_both = []
    for _ in range(2):  # what no contract may have, then what does not fit the table
        by_job = refused_by_job(lake, left)
        by_check = refused_by_check(of_expressions(*left), judge)
        assert by_job <= by_check, [left[int(key[7:-1]) - 1] for key in by_job - by_check]
        refused_by_both += [text for number, text in enumerate(left) if f"column[{number + 1}]" in by_job]
        left = [text for number, text in enumerate(left) if f"column[{number + 1}]" not in by_job]
    assert refused_by_check(of_expressions(*left), judge) == set(), "the check refuses more than the job"
    assert len(left) > 150 / PARTS
    assert len(refused_by_both) > 100 / PARTS
    run = lake.export(of_expressions(*left), "--dry-run", "true")
    assert run.state() == "dry_run", run.window()


def test_every_allowed_function_is_tried():
    tried = {word for text in every_expression() for word in text.replace("(", " ( ").split()}
    assert sorted(SCALAR - tried) == []


@pytest.mark.slow
def test_every_aggregate_function_is_judged_alike(lake, judge):
    calls = [f"{name}({'flag' if name in BOOLEANS else 'n'})" for name in sorted(AGGREGATE)]
    measures = [column(f"m{number}", measure=f"cast({call} as string)") for number, call in enumerate(calls)]
    text = contract(column("id"), *measures, aggregate={"no_persons_because": "made up"}, deduplicate=None)
    assert refused_by_check(text, judge) == set()
    assert lake.export(text, "--dry-run", "true").state() == "dry_run"


BOOLEANS = ("any", "some", "every", "bool_and", "bool_or", "count_if")
