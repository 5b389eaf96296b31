"""What a rehearsal derives from a deployment file: which checks apply, how the copy differs, which events it
makes, and what it changes in an update.
"""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, date, datetime

import attrs
import pytest

from config.deployments import deployment_file
from config.exports import contracts
from config.exports.check import NOT_JUDGED
from config.exports.file_model import Check
from config.exports.windows import find_window
from glue_jobs.delivery.csv import guarded
from lakeferry.errors import CommandFailed
from lakeferry.rehearsal import changes, events, subject
from lakeferry.rehearsal.checks import tables
from lakeferry.rehearsal.events import decode
from lakeferry.rehearsal.harness import TopicRecords
from lakeferry.rehearsal.phases import LAST, PHASES
from lakeferry.rehearsal.steering import steer
from lakeferry.rehearsal.subject import Subject
from lakeferry.verification import data_files, oracle
from lakeferry.verification.oracle import Question, Record
from simulators.data.schema_values import SchemaValues
from tests.support import shipped
from tests.support.lake import ROOT

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
DATA = ROOT / "tests" / "data"
SALES = json.loads((ROOT / "project" / "topics" / "sales_orders.avsc").read_text())


def load(name):
    return deployment_file.load(DATA / f"{name}.toml", judge=NOT_JUDGED).deployment


def absent(deployment):
    """Return the steps that don't apply, with the reasons."""
    steps = [step for phase in (*PHASES, LAST) for step in phase.steps]
    return {step.claim: step.absent(deployment) for step in steps if step.absent(deployment)}


#: What a file without people and without mails over SES has nothing to check for.
NOBODY = {
    "a person in Athena sees some columns, and nothing personal": "the file has no athena_readers",
    "small files are attached to the mail": "the file has no [mail], and SNS sends no files",
    "the link in a mail opens the file": "no export has link_days and a recipient",
}


class TestWhichChecksApply:
    def test_all_but_those_about_people_and_links_to_the_example(self):
        found = absent(subject.load_example().loaded.deployment)
        in_snowflake = "a person in Snowflake sees the views, and nothing personal"
        assert found == {in_snowflake: "the file has no grant_to_users", **NOBODY}

    def test_links_to_the_shipped_file_that_has_them(self):
        assert "the link in a mail opens the file" not in absent(shipped.load("orders").deployment)

    def test_a_file_of_exports_only_has_nothing_at_a_vendor(self):
        why = "the file has no [confluent], so it creates nothing at a vendor"
        assert absent(load("existing")) == {
            "Snowflake shows new rows after its refresh": "the deployment does not use Snowflake",
            "a person in Snowflake sees the views, and nothing personal": "the deployment does not use "
            "Snowflake",
            "a person in Snowflake sees the aggregates": "the deployment does not use Snowflake",
            "doctor names a broken handshake": "no vendor assumes a role of the deployment",
            **NOBODY,
            "every secret rotates while a reader reads": why,
            "a key is rotated and revoked by hand": why,
            "an edited Flink statement goes on where its old text stopped": "the file has no Flink statement",
            "what somebody deleted is reported and created again": why,
            "a failed change rolls back completely": why,
        }

    def test_a_file_without_exports_or_snowflake_says_so(self):
        found = absent(load("existing_cluster"))
        assert set(found.values()) == {
            "the file has no export",
            "the file has no aggregates = true under [snowflake]",
            "the file has no grant_to_users",
            "the file has no athena_readers",
        }
        assert "Snowflake shows new rows after its refresh" in absent(load("managed"))

    def test_a_table_that_only_confluent_stores_is_not_in_glue(self):
        deployment = load("managed")
        topics = [topic for topic in deployment.topics if topic.tableflow and topic.tableflow.is_managed]
        found = absent(attrs.evolve(deployment, topics=topics))
        assert found["Athena's named queries run"] == "the file has no table in Glue"
        assert "doctor names a broken handshake" in found


class TestTheRehearsedWindow:
    """Orders that Datagen makes from a schema are of four weeks; all other events are of one window."""

    def find(self, now):
        return {
            due.export.contract: due.window.label for due in subject.list_due(shipped.load("orders"), now)
        }

    def test_is_the_fourth_if_the_topic_has_events_of_past_windows(self):
        assert self.find(NOW) == {"weekly_store_orders": "2026-W47", "daily_trades_by_minute": "2026-11-22"}

    def test_is_one_that_is_due(self):
        earlier = datetime(2026, 11, 17, tzinfo=UTC)
        assert self.find(earlier)["weekly_store_orders"] == "2026-W46"


def test_the_example_deploys_what_ships():
    assert (subject.EXAMPLE / "deployments" / "dev.toml").read_text() == shipped.read("dev")


class TestTheCopy:
    def adapted(self, tmp_path, old, new):
        project = tmp_path / "project"
        for folder in ("deployments", "exports", "topics"):
            (project / folder).mkdir(parents=True)
        for file in (ROOT / "project" / "topics").glob("*.avsc"):
            (project / "topics" / file.name).write_text(file.read_text())
        for name in shipped.EXPORTS:
            text = (ROOT / "project" / "exports" / f"{name}.toml").read_text()
            (project / "exports" / f"{name}.toml").write_text(text)
        text = shipped.read("prod")
        assert old in text
        file = project / "deployments" / "prod.toml"
        file.write_text(text.replace(old, new))
        return subject.adapt(Subject(deployment_file.load(file, project, judge=NOT_JUDGED), project), NOW)

    def test_a_file_that_the_simulators_can_take_is_not_changed(self, tmp_path):
        adapted = self.adapted(tmp_path, "prod", "prod")
        assert (adapted.text, adapted.differences) == (shipped.read("prod"), ())

    def test_the_account_is_that_of_the_embedded_aws(self, tmp_path):
        region = 'region = "eu-central-1"'
        boundary = 'permissions_boundary = "arn:aws:iam::111122223333:policy/team/limits"'
        adapted = self.adapted(tmp_path, region, f'{region}\naccount = "111122223333"\n{boundary}')
        assert adapted.loaded.deployment.aws.account == "000000000000"
        assert "arn:aws:iam::000000000000:policy/team/limits" in adapted.text
        assert adapted.differences == ("the account is 000000000000 instead of 111122223333",)

    def test_a_window_that_has_not_ended_is_replaced_by_the_last_one_that_was_due(self, tmp_path):
        contract = 'contract = "weekly_sales_by_region"'
        adapted = self.adapted(tmp_path, contract, f"{contract}\nfirst_day = 2026-11-26")
        first, second = adapted.loaded.deployment.exports
        assert (first.first_day, str(second.first_day)) == (None, "2026-11-16")
        assert "exports[1].first_day is 2026-11-16" in adapted.differences[0]
        assert max(due.time for due in subject.list_due(adapted.loaded, NOW)) <= NOW

    def test_what_other_departments_have_is_refused_by_its_keys(self, tmp_path):
        region = 'region = "eu-central-1"'
        given = 'bootstrap_qualifier = "security"\nexisting_lake_bucket = "acme-lake"'
        with pytest.raises(CommandFailed) as refused:
            self.adapted(tmp_path, region, f"{region}\n{given}")
        assert refused.value.code == "REHEARSAL-FILE"
        assert refused.value.message.startswith("aws.existing_lake_bucket, aws.bootstrap_qualifier: ")

    @pytest.mark.slow
    def test_a_schedule_that_never_comes_is_named(self, tmp_path):
        with pytest.raises(CommandFailed) as refused:
            self.adapted(tmp_path, 'cron = "30 6 * * ? *"', 'cron = "30 6 1 1 ? 2199"')
        assert refused.value.code == "REHEARSAL-FILE"
        assert refused.value.message.startswith("exports[1].cron: 30 6 1 1 ? 2199 does not come")

    def test_nothing_is_adopted(self, tmp_path):
        name = 'name = "sales_orders"\n'
        adapted = self.adapted(tmp_path, name, f'{name}adopt = ["topic"]\n')
        assert adapted.loaded.deployment.topics[0].adopt == []
        assert "nothing is adopted" in adapted.differences[0]


class TestValues:
    def values(self, contract, count=200):
        window = find_window(contract.window.first, contract.window)
        made = SchemaValues(steer(SALES, [contract], window), random.Random(1))
        return window, [made.next() for _ in range(count)]

    def test_they_are_what_the_contract_needs(self):
        contract = contracts.load("weekly_sales")
        window, values = self.values(contract)
        assert {value["status"] for value in values} == {"accepted", "amended", "returned"}
        assert len({value["order_id"] for value in values}) == len(values)
        times = [value["ordered_at"] / 1000 for value in values]
        assert window.start.timestamp() <= min(times) < max(times) < window.end.timestamp()

    @pytest.mark.parametrize(
        ("zone", "every", "first", "last"),
        [
            ("America/New_York", "iso_week", date(2026, 11, 2), date(2026, 11, 8)),
            ("Pacific/Kiritimati", "day", date(2026, 11, 8), date(2026, 11, 8)),
        ],
    )
    def test_dates_are_those_of_the_windows_days(self, zone, every, first, last):
        ordered_on = {"name": "ordered_on", "type": ["null", {"type": "int", "logicalType": "date"}]}
        schema = SALES | {"fields": [*SALES["fields"], ordered_on]}
        contract = contracts.load("weekly_sales")
        source = attrs.evolve(contract.source, event_time="ordered_on")
        rule = attrs.evolve(contract.window, zone=zone, every=every)
        dated = attrs.evolve(contract, source=source, window=rule)
        steered = steer(schema, [dated], find_window(last, rule))
        made = SchemaValues(steered, random.Random(1))
        days = {made.next()["ordered_on"] for _ in range(300)} - {None}
        epoch = date(1970, 1, 1).toordinal()
        assert (min(days), max(days)) == (first.toordinal() - epoch, last.toordinal() - epoch)

    def test_what_the_user_writes_into_the_schema_is_used(self):
        schema = json.loads(json.dumps(SALES))
        (field,) = [field for field in schema["fields"] if field["name"] == "order_id"]
        field["type"] = {"type": "string", "arg.properties": {"options": ["A-1"]}}
        contract = contracts.load("weekly_sales")
        window = find_window(contract.window.first, contract.window)
        made = SchemaValues(steer(schema, [contract], window), random.Random(1))
        assert {made.next()["order_id"] for _ in range(20)} == {"A-1"}

    def test_fields_of_an_item_and_of_a_nullable_record_are_found(self):
        contract = contracts.load("weekly_sales_by_region")
        steered = steer(SALES, [contract], find_window(contract.window.first, contract.window))
        (customer,) = [field for field in steered["fields"] if field["name"] == "customer"]
        assert {"type": "string", "arg.properties": {"regex": "[a-z]{12}"}} in customer["type"]["fields"][0][
            "type"
        ]


@pytest.fixture(scope="module")
def planned():
    return events.plan(shipped.load("prod"), 0.0)


@pytest.mark.slow
class TestEvents:
    def test_each_partition_has_an_event_after_the_window(self, planned):
        made = planned.events["sales_orders"]
        (moment,) = planned.moments
        assert sorted(record.partition for record in made.after[moment]) == list(range(12))
        assert all(record.timestamp < moment * 1000 for record in made.before[moment])
        assert all(record.timestamp >= moment * 1000 for record in made.after[moment])

    def test_every_export_has_rows_and_some_events_are_sent_twice(self, planned):
        made = planned.events["sales_orders"]
        records = TopicRecords.from_events(made).records
        assert len({record.avro for record in records}) < len(records)
        question = Question("sales_orders", made.schema, records, planned.dues)
        (answer,) = oracle.ask([question], bytes(range(32)))
        files = answer.files.values()
        assert [file.problems for file in files] == [[], []]
        assert all(len(file.rows) > 1 for file in files)

    def test_a_check_that_no_event_can_pass_is_named_before_anything_starts(self, tmp_path):
        loaded = shipped.load("prod")
        project = tmp_path / "project"
        for folder, pattern in (("exports", "*.toml"), ("topics", "*.avsc")):
            (project / folder).mkdir(parents=True)
            for file in (ROOT / "project" / folder).glob(pattern):
                (project / folder / file.name).write_text(file.read_text())
        contract = project / "exports" / "weekly_sales.toml"
        contract.write_text(contract.read_text().replace("unit_price >= 0", "unit_price > 100"))
        sources = attrs.evolve(loaded.sources, root=project)
        with pytest.raises(CommandFailed) as refused:
            events.plan(attrs.evolve(loaded, sources=sources), 0.0)
        assert refused.value.code == "REHEARSAL-FILE"
        assert "exports[0].contract: of the events that are made from the schema of sales_orders" in (
            refused.value.message
        )
        assert "arg.properties" in refused.value.hint

    def test_a_topic_without_a_schema_is_named(self, tmp_path):
        loaded = shipped.load("prod")
        sources = attrs.evolve(loaded.sources, root=tmp_path)
        deployment = attrs.evolve(loaded.deployment, exports=[])
        with pytest.raises(CommandFailed) as refused:
            events.plan(attrs.evolve(loaded, deployment=deployment, sources=sources), 0.0)
        assert refused.value.message.startswith("topics[0].schema: sales_orders has no schema")


class TestComparison:
    def find_difference(self, delivered, expected, *, show_rows=True):
        contract = next(due for due in subject.list_due(shipped.load("dev"), NOW)).contract
        header = [column.name for column in contract.columns]
        rows = [[cell] * len(header) for cell in delivered]
        wanted = [[cell] * len(header) for cell in expected]
        return data_files.find_difference(contract, header, rows, wanted, show_rows=show_rows)

    def test_a_row_that_differs_is_shown(self):
        assert self.find_difference("a", "a") == ""
        assert "instead of ('b'" in self.find_difference("a", "b")

    def test_a_row_of_real_data_is_counted_and_not_shown(self):
        difference = self.find_difference(["ada", "ada"], ["bob"], show_rows=False)
        assert difference.endswith("2 that were not expected, and 1 are missing")
        assert "ada" not in difference
        assert "bob" not in difference

    def test_rows_in_another_order_are_refused(self):
        assert "not sorted by symbol, side, hour" in self.find_difference("ba", "ab")

    @pytest.mark.parametrize(
        ("text", "cell"),
        [
            *(("amber", "amber"), ("", ""), ("a\r\nb", "a\r\nb"), ("a,\x01b", "a,\x01b")),
            *(("=1", "'=1"), ("a,-b", "a,'-b"), (' "@x', "' \"@x"), ("\nb", "'\nb")),
            *(("a\r\n=b", "a\r\n'=b"), ("a;\x01 +b", "a;'\x01 +b")),
        ],
    )
    def test_a_formula_has_an_apostrophe(self, text, cell):
        assert oracle.guard(text) == cell == guarded(text)


def test_a_question_about_any_table_is_answered_from_its_records():
    topic = shipped.load("dev").deployment.topics[0]
    schema = (ROOT / "project" / "topics" / "stock_trades.avsc").read_text()
    made = SchemaValues(json.loads(schema), random.Random(3))
    values = [made.next() for _ in range(9)]
    records = [Record(0, number, number * 1000, encode(value, schema)) for number, value in enumerate(values)]
    question = tables.build_question(topic, schema, datetime.fromtimestamp(5, UTC))
    asked = question.write("t", "X")
    assert asked.startswith('SELECT count(*), sum("quantity"), sum("price"), count(DISTINCT "side")')
    assert asked.endswith('WHERE "$$timestamp" < X')
    quantity = sum(value["quantity"] for value in values[:5])
    assert question.answer(TopicRecords(schema, records))[:2] == [5, quantity]


@pytest.mark.slow
class TestChecksOfAFile:
    """The second computation finds what the job's checks of a file find."""

    def question(self, *, choose, **changes):
        schema = (ROOT / "project" / "topics" / "stock_trades.avsc").read_text()
        made = SchemaValues(json.loads(schema), random.Random(3))
        contract = contracts.load("daily_trades")
        fields = {
            "symbol": ("symbol", "text"),
            "side": ("side", "text"),
            "number": ("kafka_offset", "integer"),
        }
        copied = [
            attrs.evolve(contract.column[0], name=name, source=field, type=type_, allowed=[])
            for name, (field, type_) in fields.items()
        ]
        plain = attrs.evolve(contract, column=copied, aggregate=None, check=[], **changes)
        plain = attrs.evolve(plain, delivery=attrs.evolve(plain.delivery, order_by=["symbol"]))
        due = next(
            due for due in subject.list_due(shipped.load("dev"), NOW) if due.export.contract == contract.name
        )
        start = int(due.window.start.timestamp() * 1000)
        values = [made.next() for _ in range(40)]
        records = [Record(0, at, start + at, encode(value, schema)) for at, value in enumerate(values)]
        return Question("stock_trades", schema, records, [attrs.evolve(due, contract=plain)], choose)

    def test_rows_that_repeat_a_key_and_too_many_rows_that_fail(self):
        few = Check(id="few", severity="block", message="", each_row="number < 0", at_most_percent=99.0)
        all_may = attrs.evolve(few, id="all", at_most_percent=100.0)
        questions = [
            self.question(choose=False, unique=["symbol", "side"]),
            self.question(choose=False, unique=["symbol", "side", "number"]),
            self.question(choose=True, unique=["symbol"]),
        ]
        checked = self.question(choose=False, unique=[])
        (due,) = checked.dues
        contract = attrs.evolve(due.contract, check=[few, all_may])
        questions.append(attrs.evolve(checked, dues=[attrs.evolve(due, contract=contract)]))
        repeated, unique, chosen, failed = oracle.ask(questions, bytes(range(32)))
        assert repeated.files["daily_trades"].problems == ["two rows have the same symbol, side"]
        rows = unique.files["daily_trades"].rows
        assert len({tuple(row) for row in rows}) == len(rows) == 40
        assert unique.files["daily_trades"].problems == []
        symbols = [row[0] for row in chosen.files["daily_trades"].rows]
        assert sorted(set(symbols)) == symbols
        assert set(symbols) == {row[0] for row in rows}
        assert chosen.files["daily_trades"].problems == []
        assert failed.files["daily_trades"].problems == ["check few is false for too many rows"]


def encode(value, schema):
    import io

    import fastavro

    encoded = io.BytesIO()
    fastavro.schemaless_writer(encoded, fastavro.parse_schema(json.loads(schema)), value)
    assert decode(encoded.getvalue(), schema) == value
    return base64.b64encode(encoded.getvalue()).decode()


class TestUpdate:
    @pytest.mark.parametrize("name", ["existing", "existing_cluster", "managed"])
    def test_the_file_is_valid_after_it(self, name, tmp_path):
        text = (DATA / f"{name}.toml").read_text()
        project = tmp_path / "project"
        for folder in ("exports", "topics", "flink"):
            (project / folder).mkdir(parents=True)
        for part in ("exports/*", "topics/*", "flink/*/*"):
            for file in (ROOT / "project").glob(part):
                if file.is_file():
                    copy = project / file.relative_to(ROOT / "project")
                    copy.parent.mkdir(exist_ok=True)
                    copy.write_text(file.read_text())
        change = changes.add(load(name), text, project)
        change.write_files(project)
        assert changes.find_problem(change, project) == ""
        assert change.adds_topic == (name != "existing")
        assert change.adds_export == (name != "existing_cluster")
        assert changes.find_problem(attrs.evolve(change, text=text + "\nnonsense = 1"), project) != ""
