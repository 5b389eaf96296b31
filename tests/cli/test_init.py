"""`lakeferry init`: it asks few questions, remembers the answers, writes a valid file, and overwrites nothing
without consent.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime

import pytest

from config.deployments import deployment_file
from config.deployments.source_model import CatalogSource
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from lakeferry.rehearsal.harness import talk
from tests.support.command import Clone
from tests.support.promises import promised

MINE = ("--owner", "sales team", "--recipients", "sales@corp.test", "--engineers", "on-call@corp.test")


@pytest.fixture
def project(clone):
    """The session's clone without answers of another test. Its deployment files are restored afterwards."""
    (clone.root / ".lakeferry" / "answers.json").unlink(missing_ok=True)
    kept = {file: file.read_bytes() for file in (clone.root / "project" / "deployments").glob("*.toml")}
    yield clone
    for file in (clone.root / "project" / "deployments").glob("*.toml"):
        file.write_bytes(kept[file]) if file in kept else file.unlink()
    (clone.root / ".lakeferry" / "answers.json").unlink(missing_ok=True)


def plan_of(project, stage):
    return deployment_file.load(
        project.root / "project" / "deployments" / f"{stage}.toml", project.root / "project", judge=NOT_JUDGED
    ).deployment


def test_a_new_stage_has_a_file_that_passes_every_check(project):
    before = datetime.now(UTC).date()
    result = project.run("init", "--stage", "test", *MINE, "--snowflake", "myorg-sales", "--json")
    assert result.code == 0, result.err
    assert result.document.keys() == promised("init")
    assert (result.document["file"], result.document["written"]) == ("project/deployments/test.toml", True)
    made = plan_of(project, "test")
    assert (made.prefix, made.identity.owner, made.snowflake.account) == (
        "lakeferry-test",
        "sales team",
        "myorg-sales",
    )
    assert [topic.name for topic in made.topics] == ["stock_trades", "stock_trades_with_totals"]
    assert [(export.contract, export.cron, export.recipients) for export in made.exports] == [
        ("daily_trades", "0 6,14 * * ? *", ["sales@corp.test"])
    ]
    assert before <= made.exports[0].first_day <= datetime.now(UTC).date(), "it has events from now on"
    assert made.snowflake.key_secret in result.document["not_stored"]
    assert result.document["next"] == [
        f"{words} --stage test"
        for words in ("secrets set confluent", "secrets set snowflake", "doctor", "plan", "deploy")
    ]


@pytest.mark.slow
def test_the_file_has_comments_and_names_its_schema(project):
    project.run("init", "--stage", "test", "--yes")
    text = (project.root / "project" / "deployments" / "test.toml").read_text()
    schema = text.splitlines()[0].removeprefix("#:schema ")
    assert schema.endswith("deployment.schema.json")
    assert (ROOT / "project" / "deployments" / schema).is_file(), "an editor looks for it beside the file"
    assert "lakeferry secrets set confluent" in text


#: Answers, and a check of the deployment that the file then describes.
ANSWERS = {
    "an environment that exists": (
        ("--environment", "env-abc123", "--environment-name", "lake"),
        lambda made: (
            (made.confluent.environment_id, made.confluent.environment_name) == ("env-abc123", "lake")
        ),
    ),
    "no Snowflake": (
        ("--snowflake", "none"),
        lambda made: not made.uses_snowflake and not made.tables[0].tableflow.snowflake_table,
    ),
    "topics of one's own": (
        ("--topics", "sales_orders, store_orders"),
        lambda made: (
            [topic.name for topic in made.tables] == ["sales_orders", "store_orders"]
            and len(made.exports) == 2
        ),
    ),
    "a time for weekly files": (
        ("--topics", "sales_orders", "--schedule", "07:30", "--zone", "Europe/Berlin"),
        lambda made: (made.exports[0].cron, made.exports[0].zone) == ("30 7 * * ? *", "Europe/Berlin"),
    ),
    "cron": (("--schedule", "0 6,18 * * ? *"), lambda made: made.exports[0].cron == "0 6,18 * * ? *"),
    "nobody to mail to": (("--recipients", "none"), lambda made: made.exports[0].recipients == []),
    "a region": (("--region", "eu-central-1"), lambda made: made.aws.region == "eu-central-1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["test", "dev"])
@pytest.mark.parametrize("case", ANSWERS)
def test_each_answer_is_written_to_a_new_and_to_an_existing_file(project, case, stage):
    words, is_so = ANSWERS[case]
    result = project.run("init", "--stage", stage, *words, "--yes")
    assert result.code == 0, result.err
    assert is_so(plan_of(project, stage))


#: Invalid answers, and what the message contains.
WRONG = {
    "a region": (("--region", "nowhere"), "--region"),
    "a mail address": (("--engineers", "somebody"), "'somebody' is not a mail address"),
    "a topic": (("--topics", "Sales"), "upper-case"),
    "a schedule": (("--schedule", "25:00"), "--schedule"),
    "a zone": (("--zone", "Berlin"), "Berlin"),
    "an environment without its name": (("--environment", "env-1"), "--environment-name"),
    "an account": (("--snowflake", "https://x"), "--snowflake"),
    "several": (("--region", "nowhere", "--zone", "Berlin"), "--zone"),
    "a stage": (("--stage", "Test-1"), "stage"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", WRONG)
def test_invalid_answers_are_reported_together_and_nothing_is_written(project, case):
    words, message = WRONG[case]
    result = project.run("init", *(() if "--stage" in words else ("--stage", "test")), *words, "--json")
    assert (result.code, result.document["code"]) == (2, "INIT-ANSWER")
    assert message in result.document["message"]
    assert not (project.root / "project" / "deployments" / "test.toml").exists()


@pytest.mark.slow
def test_a_topic_without_a_schema_is_refused_by_the_checks_of_every_deployment(project):
    result = project.run("init", "--stage", "test", "--topics", "unheard_of", "--json")
    assert (result.code, result.document["code"]) == (2, "DEPLOYMENT-FILE")
    assert "unheard_of has no schema" in result.document["message"]
    assert not (project.root / "project" / "deployments" / "test.toml").exists()


def test_an_existing_file_is_not_overwritten_without_consent(project):
    file = project.root / "project" / "deployments" / "dev.toml"
    before = file.read_text()
    result = project.run("init", *MINE, "--json")
    assert (result.code, result.document["code"]) == (2, "INIT-EXISTS")
    assert '+owner = "sales team"' in result.document["details"]["diff"]
    assert file.read_text() == before


def test_a_change_leaves_the_rest_of_the_file_as_it_was(project):
    file = project.root / "project" / "deployments" / "dev.toml"
    before = file.read_text().splitlines()
    assert project.run("init", *MINE, "--yes").code == 0
    after = file.read_text().splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [
        ('owner = "data-platform team"', 'owner = "sales team"'),
        ('recipients = ["analysts@example.com"]', 'recipients = ["sales@corp.test"]'),
        ('engineers = ["engineers@example.com"]', 'engineers = ["on-call@corp.test"]'),
    ]


@pytest.mark.slow
def test_with_yes_the_difference_and_dropped_exports_are_shown(project):
    result = project.run("init", "--stage", "dev", "--topics", "sales_orders", "--yes")
    assert result.code == 0, result.err
    assert "-[[exports]]" in result.out
    assert "! exports would be removed from project/deployments/dev.toml: daily_trades" in result.err


@pytest.mark.slow
def test_the_same_answers_again_write_nothing(project):
    assert project.run("init", "--stage", "test", *MINE).code == 0
    again = project.run("init", "--stage", "test", "--json")
    assert (again.code, again.document["written"], again.document["diff"]) == (0, False, "")


@pytest.mark.slow
@pytest.mark.parametrize("topics", ["example", "sales_orders"])
def test_topics_that_the_file_has_stay_as_they_are(project, topics):
    words = ("init", "--stage", "test", "--topics", topics, *MINE, "--yes")
    assert project.run(*words).code == 0
    file = project.root / "project" / "deployments" / "test.toml"
    file.write_text(before := file.read_text().replace("partitions = 6", "partitions = 12"))
    again = project.run(*words, "--json")
    assert (again.code, again.document["written"], file.read_text()) == (0, False, before)


@pytest.mark.slow
def test_a_topic_is_added_and_removed_without_a_change_of_the_others(project):
    words = ("init", "--stage", "test", *MINE, "--yes")
    assert project.run(*words, "--topics", "sales_orders").code == 0
    file = project.root / "project" / "deployments" / "test.toml"
    one = (
        file.read_text()
        .replace("partitions = 6", "partitions = 12")
        .replace("first_day = 202", "first_day = 201")
    )
    file.write_text(one)
    result = project.run(*words, "--topics", "sales_orders,store_orders", "--json")
    assert result.code == 0, result.err
    assert [line for line in result.document["diff"].splitlines()[2:] if line.startswith("-")] == []
    assert [topic.name for topic in plan_of(project, "test").topics] == ["sales_orders", "store_orders"]
    assert project.run(*words, "--topics", "sales_orders").code == 0
    assert file.read_text() == one


@pytest.mark.slow
def test_the_example_keeps_its_comment_when_another_topic_is_removed(project):
    words = ("init", "--stage", "test", *MINE, "--yes")
    assert project.run(*words, "--topics", "example").code == 0
    before = (file := project.root / "project" / "deployments" / "test.toml").read_text()
    assert project.run(*words, "--topics", "stock_trades,stock_trades_with_totals,sales_orders").code == 0
    assert project.run(*words, "--topics", "example").code == 0
    assert file.read_text() == before


@pytest.mark.slow
def test_topics_that_are_removed_take_their_statements_and_exports_with_them(project):
    words = ("init", "--stage", "test", *MINE, "--yes")
    assert project.run(*words, "--topics", "example").code == 0
    assert project.run(*words, "--topics", "stock_trades,sales_orders").code == 0
    made = plan_of(project, "test")
    assert [topic.name for topic in made.topics] == ["stock_trades", "sales_orders"]
    assert (made.statements, [export.contract for export in made.exports][:1]) == ([], ["daily_trades"])


@pytest.mark.slow
def test_answers_are_remembered_for_the_next_stage(project):
    project.run("init", "--stage", "test", *MINE, "--snowflake", "myorg-sales")
    project.run("init", "--stage", "next")
    made = plan_of(project, "next")
    assert (made.identity.owner, made.snowflake.account, made.alerts.engineers) == (
        "sales team", "myorg-sales", ["on-call@corp.test"],
    )  # fmt: skip


@pytest.mark.slow
def test_defaults_that_are_answers_for_another_stage_are_named(project):
    project.run(
        "init",
        "--stage",
        "test",
        "--region",
        "eu-central-1",
        "--environment",
        "env-1",
        "--environment-name",
        "lake",
    )
    shown = project.run("init", "--stage", "next", "--yes").err
    assert "Defaults from your last answers" in shown
    assert "region eu-central-1; environment env-1; environment name lake" in shown
    assert "your last answers" not in project.run("init", "--stage", "next", "--yes").err, (
        "the file has its own values"
    )


@pytest.fixture
def deliveries(project):
    """A topic's schema, without a contract that reads it."""
    file = project.root / "project" / "topics" / "deliveries.avsc"
    shutil.copy(project.root / "project" / "topics" / "sales_orders.avsc", file)
    yield file
    file.unlink()


@pytest.mark.slow
@pytest.mark.usefixtures("deliveries")
@pytest.mark.parametrize("existing", [False, True])
def test_answers_that_the_file_does_not_need_yet_are_named(project, existing):
    if existing:
        project.run("init", "--stage", "test", "--topics", "deliveries", "--yes")
    words = (
        "--schedule",
        "06:30",
        "--zone",
        "Asia/Tokyo",
        "--recipients",
        "anna@corp.test",
        "--topics",
        "deliveries",
    )
    result = project.run("init", "--stage", "test", *words, "--yes")
    assert result.code == 0, result.err
    assert plan_of(project, "test").exports == []
    for part in (
        "06:30",
        "Asia/Tokyo",
        "anna@corp.test",
        "No contract in project/exports/ reads deliveries",
        "change-a-deployment.md#add-an-export",
    ):
        assert part in result.err
    assert "not used" not in project.run("init", "--stage", "next", "--topics", "sales_orders", "--yes").err


def test_a_contract_with_mistakes_is_left_out_and_named(project):
    file = project.root / "project" / "exports" / "half_written.toml"
    file.write_text('name = "half_written"')
    result = project.run("init", "--stage", "test", "--yes")
    listed = project.run("export", "list", "--json")
    file.unlink()
    assert (result.code, listed.code) == (0, 0), result.err
    assert "project/exports/half_written.toml was left out, because it has mistakes" in result.err
    assert listed.document["broken"] == ["half_written"]


@pytest.mark.slow
def test_after_a_refused_file_the_answers_are_still_there(project):
    refused = project.run("init", "--stage", "test", "--owner", "sales team", "--topics", "unheard_of")
    assert refused.code == 2
    assert project.run("init", "--stage", "test", "--yes").code == 0
    assert plan_of(project, "test").identity.owner == "sales team"


@pytest.mark.slow
def test_an_unreadable_file_of_answers_is_ignored(project):
    (project.root / ".lakeferry").mkdir(exist_ok=True)
    for text in ("{", "[]", '{"region": "nowhere", "colour": "red"}'):
        (project.root / ".lakeferry" / "answers.json").write_text(text)
        assert project.run("init", "--stage", "test", "--yes").code == 0
        assert plan_of(project, "test").aws.region == "eu-west-1"


@pytest.mark.slow
def test_example_addresses_are_reported(project):
    assert "engineers@example.com is an example" in project.run("init", "--stage", "test", "--yes").err
    assert "is an example" not in project.run("init", "--stage", "next", *MINE).err


def test_a_file_with_mistakes_is_not_changed(project):
    file = project.root / "project" / "deployments" / "dev.toml"
    file.write_text(file.read_text().replace('zone = "', 'zoen = "'))
    before = file.read_text()
    result = project.run("init", *MINE, "--yes", "--json")
    assert (result.code, result.document["code"]) == (2, "DEPLOYMENT-FILE")
    assert "zoen" in result.document["message"]
    assert file.read_text() == before


def test_outside_of_a_clone_the_hint_names_the_clone(project, tmp_path):
    changes = {"PYTHONPATH": str(project.root)}
    elsewhere = Clone(tmp_path).run("init", "--json", changes=changes)
    assert (elsewhere.code, elsewhere.document["code"]) == (3, "NO-CLONE")
    assert str(project.root) in elsewhere.document["hint"]


def test_a_folder_without_the_files_of_a_clone_is_refused(tmp_path):
    shutil.copytree(ROOT / "lakeferry", tmp_path / "lakeferry")
    for part in ("config", "glue_jobs", "lambdas", "project"):
        shutil.copytree(ROOT / part, tmp_path / part)
    result = Clone(tmp_path).run("init", "--json")
    assert (result.code, result.document["code"]) == (3, "NO-CLONE")


def environment(project):
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | {"PYTHONPATH": str(project.root)}


def test_on_a_terminal_questions_are_asked_with_defaults_and_wrong_answers_again(project):
    typed = [
        ("none [none]: ", "\n"), ("called? [lakeferry]: ", "\n"),
        ("role? [data-platform team]: ", "sales team\n"),
        ("cluster [eu-west-1]: ", "nowhere\n"), ("cluster [eu-west-1]: ", "eu-north-1\n"),
        ("one [new]: ", "env-abc123\n"), ("in Confluent: ", "lake\n"),
        ("existing one [new]: ", "\n"), ("none [none]: ", "\n"),
        ("commas [example]: ", "unheard_of\n"), ("commas [example]: ", "\n"), ("fields [06:00]: ", "7:15\n"),
        ("zone? [UTC]: ", "\n"), ("none [engineers@example.com]: ", "none\n"),
        ("commas) [engineers@example.com]: ", "on-call@corp.test\n"),
    ]  # fmt: skip
    code, shown = talk(["init", "--stage", "test"], environment(project), typed, project.root)
    assert code == 0, shown
    made = plan_of(project, "test")
    assert (made.aws.region, made.confluent.environment_id, made.exports[0].cron) == (
        "eu-north-1",
        "env-abc123",
        "15 7,15 * * ? *",
    )
    assert "is not an AWS region with Glue" in shown
    assert "there is no project/topics/unheard_of.avsc: the Avro schema of the topic" in shown


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "owner"), [("no", "data-platform team"), ("yes", "sales team")])
def test_on_a_terminal_the_difference_is_shown_and_asked_about(project, answer, owner):
    typed = [(": ", "\n")] * 11 + [("yes or no [no]: ", f"{answer}\n")]
    code, shown = talk(["init", "--owner", "sales team"], environment(project), typed[1:], project.root)
    assert code == 0, shown
    assert '+owner = "sales team"' in shown
    assert plan_of(project, "dev").identity.owner == owner
    assert ("Next: " in shown) == (answer == "yes")


def test_existing_tables_need_a_bucket_and_no_key(project):
    tables = ("--tables", "lkc-abc123", "--bucket", "acme-tableflow")
    result = project.run("init", "--stage", "shop", *MINE, *tables, "--topics", "sales_orders", "--json")
    assert result.code == 0, result.err
    made = plan_of(project, "shop")
    assert (made.confluent, made.snowflake) == (None, None)
    assert (made.source.glue_database, made.source.tableflow_bucket) == ("lkc-abc123", "acme-tableflow")
    assert [topic.name for topic in made.topics] == ["sales_orders"]
    assert result.document["not_stored"] == []
    assert result.document["next"] == [f"{words} --stage shop" for words in ("doctor", "plan", "deploy")]
    again = project.run("init", "--stage", "shop", "--yes", "--bucket", "acme-tables", "--json")
    assert again.code == 0, again.err
    assert plan_of(project, "shop").source.tableflow_bucket == "acme-tables"


CLUSTER = (
    *("--environment", "env-abc123", "--environment-name", "acme"),
    *("--cluster", "lkc-abc123", "--topics", "Sales.Trades"),
)


@pytest.mark.slow
def test_topics_of_an_existing_cluster_need_no_schema_yet(project):
    result = project.run("init", "--stage", "shared", *MINE, *CLUSTER, "--json")
    assert result.code == 0, result.err
    made = plan_of(project, "shared")
    assert (made.confluent.cluster_id, made.confluent.glue_database) == ("lkc-abc123", "lkc-abc123")
    assert [(topic.name, topic.existing) for topic in made.topics] == [("Sales.Trades", True)]
    assert "topics import --stage shared" in result.err
    again = project.run("init", "--stage", "shared", "--yes", "--cluster", "lkc-def456", "--json")
    assert again.code == 0, again.err
    assert plan_of(project, "shared").confluent.cluster_id == "lkc-def456"


def test_a_file_stays_one_of_a_new_or_of_an_existing_cluster(project):
    assert project.run("init", "--stage", "own", "--yes").code == 0
    words = ("init", "--stage", "own", "--yes", *CLUSTER, "--json")
    refused = project.run(*words)
    assert refused.code == 2
    assert "the file creates its own cluster, and can't become the other kind" in refused.document["message"]


@pytest.mark.slow
def test_exports_are_added_after_the_schemas_of_an_existing_cluster_were_imported(project):
    words = [word.replace("Sales.Trades", "Shop.Trades") for word in CLUSTER]
    assert project.run("init", "--stage", "shared4", *MINE, *words).code == 0
    assert not plan_of(project, "shared4").exports
    folder = project.root / "project"
    shutil.copy(folder / "topics" / "stock_trades.avsc", folder / "topics" / "Shop.Trades.avsc")
    contract = (folder / "exports" / "daily_trades.toml").read_text()
    own = folder / "exports" / "shop_trades.toml"
    own.write_text(
        contract.replace('"stock_trades"', '"Shop.Trades"').replace('"daily_trades"', '"shop_trades"')
    )
    try:
        again = project.run("init", "--stage", "shared4", "--yes")
        assert again.code == 0, again.err
        assert [export.contract for export in plan_of(project, "shared4").exports] == ["shop_trades"]
    finally:
        own.unlink()


@pytest.mark.slow
def test_a_cluster_without_its_environment_is_refused(project):
    """Without the refusal, the file would create a cluster."""
    refused = project.run("init", "--stage", "shared3", "--yes", "--cluster", "lkc-abc123", "--json")
    assert refused.code == 2
    assert "--cluster: needs --environment" in refused.document["message"]
    assert not (project.root / "project" / "deployments" / "shared3.toml").exists()


def test_the_example_is_no_topic_of_an_existing_cluster(project):
    words = [word for word in CLUSTER if word not in ("--topics", "Sales.Trades")]
    refused = project.run("init", "--stage", "shared2", "--yes", *words, "--json")
    assert refused.code == 2
    assert "name topics of the cluster" in refused.document["message"]


@pytest.mark.slow
def test_exports_are_added_when_the_schemas_of_existing_tables_are_known(project, tmp_path):
    schema = project.root / "project" / "topics" / "sales_orders.avsc"
    kept = schema.rename(tmp_path / "kept.avsc")
    tables = ("--tables", "lkc-abc123", "--bucket", "acme-tableflow", "--topics", "sales_orders")
    try:
        first = project.run("init", "--stage", "shop", *MINE, *tables)
    finally:
        kept.rename(schema)
    assert "topics import --stage shop` reads them from the tables; then run this command" in first.err
    assert plan_of(project, "shop").exports == []
    assert project.run("init", "--stage", "shop", "--yes").code == 0
    assert [export.contract for export in plan_of(project, "shop").exports] == [
        "weekly_sales",
        "weekly_sales_by_region",
    ]


def test_existing_tables_are_named(project):
    result = project.run("init", "--stage", "shop", *MINE, "--tables", "lkc-abc123", "--json")
    assert (result.code, result.document["code"]) == (2, "INIT-ANSWER")
    assert {mistake["key"] for mistake in result.document["details"]} == {"bucket", "topics"}


CATALOG = (
    "https://tableflow.eu-central-1.aws.confluent.cloud/iceberg/catalog"
    "/organizations/9bb441c4-edef-46ac-8a41-c49e44a3fd9a/environments/env-abc123"
)
AT_CONFLUENT = (
    *("--tables", CATALOG, "--cluster", "lkc-abc123"),
    *("--tableflow-key", "shop/tableflow", "--topics", "sales_orders"),
)


def test_tables_at_confluent_need_their_cluster_and_the_name_of_a_key(project):
    result = project.run("init", "--stage", "stored", *MINE, *AT_CONFLUENT, "--json")
    assert result.code == 0, result.err
    assert result.document["not_stored"] == ["shop/tableflow"]
    made = plan_of(project, "stored")
    assert (made.confluent, made.source.catalog) == (
        None,
        CatalogSource(CATALOG, "lkc-abc123", "shop/tableflow"),
    )
    assert made.aws.region == "eu-central-1"
    assert [export.contract for export in made.exports] == ["weekly_sales", "weekly_sales_by_region"]
    again = project.run("init", "--stage", "stored", "--yes", "--tableflow-key", "shop/reader", "--json")
    assert again.code == 0, again.err
    assert plan_of(project, "stored").source.catalog.key_secret == "shop/reader"
    unchanged = project.run("init", "--stage", "stored", "--yes", "--json")
    assert (unchanged.code, unchanged.document["written"]) == (0, False)


def test_all_that_is_missing_for_tables_at_confluent_is_named(project):
    refused = project.run("init", "--stage", "stored2", *MINE, "--tables", CATALOG, "--json")
    assert (refused.code, refused.document["code"]) == (2, "INIT-ANSWER")
    assert {mistake["key"] for mistake in refused.document["details"]} == {
        "cluster",
        "tableflow_key",
        "topics",
    }


def test_an_address_that_is_not_a_catalog_is_refused(project):
    words = ("--tables", "https://example.com/iceberg", *AT_CONFLUENT[2:])
    refused = project.run("init", "--stage", "stored3", *MINE, *words, "--json")
    assert refused.code == 2
    assert "REST Catalog Endpoint" in refused.document["message"]


@pytest.mark.slow
def test_tables_stay_in_glue_or_at_confluent(project):
    words = ("--tables", "lkc-abc123", "--bucket", "acme-tableflow", "--topics", "sales_orders")
    assert project.run("init", "--stage", "shop5", *MINE, *words).code == 0
    refused = project.run("init", "--stage", "shop5", "--yes", *AT_CONFLUENT, "--json")
    assert refused.code == 2
    assert "the file reads tables in Glue, and can't become the other kind" in refused.document["message"]


def test_a_deployment_with_a_cluster_is_not_turned_into_one_without(project):
    """Its cluster would be deleted with the next deployment."""
    assert project.run("init", "--stage", "test", *MINE, "--json").code == 0
    tables = ("--tables", "lkc-abc123", "--bucket", "acme-tableflow", "--topics", "sales_orders")
    result = project.run("init", "--stage", "test", "--yes", *tables, "--json")
    assert (result.code, result.document["code"]) == (2, "INIT-ANSWER")
    assert "another --stage" in result.document["message"]
