"""Rules about tables that exist: all that each reports, and what is just valid."""

from __future__ import annotations

import attrs

from config.deployments import source_rules
from config.deployments.confluent_model import Statement, Tableflow, Topic
from config.deployments.model import Aws
from config.deployments.source_model import Source
from tests.support.rule_kit import CONFLUENT, GLUE, SNOWFLAKE, deployment

URI = "https://tableflow.eu-west-1.aws.confluent.cloud/iceberg/catalog/organizations/o/environments/env-a"
CATALOG = Source(catalog_uri=URI, cluster_id="lkc-a", tableflow_key_secret="acme/tableflow")


def test_tables_are_created_or_exist():
    def find(confluent, source):
        made = deployment(confluent=confluent, source=source)
        return list(source_rules.tables_have_one_origin(made, None))

    assert find(CONFLUENT, None) == find(None, GLUE) == []
    assert find(CONFLUENT, GLUE) == [
        (
            "source",
            "can't be combined with [confluent]: the first names tables that exist, the second creates them. Keep "
            "one. For both, write two deployment files",
        )
    ]
    assert find(None, None) == [
        (
            "confluent",
            "is missing, and so is [source]. Add [confluent] to create a cluster with its tables, or [source] to "
            "export tables that Tableflow writes already",
        )
    ]


def find_in_source(source, aws=None, **parts):
    made = deployment(confluent=None, source=source, aws=aws or Aws(region="eu-west-1"), **parts)
    return list(source_rules.source_is_only_read(made, None))


def test_a_source_is_only_read():
    created = Topic(
        name="t",
        existing=True,
        config={"a": "b"},
        datagen="ORDERS",
        statement="s",
        adopt=["topic"],
        tableflow=Tableflow(),
    )
    topics = [Topic(name="plain", schema_file="topics/t.avsc", partitions=3), created]
    found = find_in_source(
        GLUE,
        Aws(region="eu-west-1", tableflow_bucket="mine", lake_bucket="lake"),
        topics=topics,
        statements=[Statement(name="s")],
        snowflake=SNOWFLAKE,
    )
    keys = ("existing", "config", "datagen", "statement", "adopt", "tableflow")
    assert found == [
        *(
            (f"topics[1].{key}", f"t exists already, and with [source] Lakeferry only reads it. Remove {key}")
            for key in keys
        ),
        (
            "statements",
            "need [confluent]: with [source], nothing is created in Confluent Cloud. Remove them",
        ),
        (
            "snowflake",
            "needs [confluent]: with [source], Lakeferry deploys exports only. Remove the table, or set enabled = "
            "false",
        ),
        (
            "aws.tableflow_bucket",
            "names a bucket that is created, and with [source] the tables have a bucket. Write its name to "
            "source.tableflow_bucket",
        ),
    ]
    assert find_in_source(GLUE, snowflake=attrs.evolve(SNOWFLAKE, enabled=False)) == []
    made = deployment(topics=topics, statements=[Statement(name="s")], snowflake=SNOWFLAKE)
    assert list(source_rules.source_is_only_read(made, None)) == []


def test_a_source_is_in_the_region_of_the_deployment():
    key = "arn:aws:kms:{}:111122223333:key/1234"
    assert (
        find_in_source(attrs.evolve(GLUE, kms_key=key.format("eu-west-1"))) == find_in_source(CATALOG) == []
    )
    for region in ("ap-south-1", "us-east-1"):
        assert find_in_source(attrs.evolve(GLUE, kms_key=key.format(region))) == [
            (
                "source.kms_key",
                f"is a key in {region}, and the bucket is in eu-west-1: S3 encrypts with keys of the "
                "bucket's region",
            )
        ]
    assert find_in_source(CATALOG, Aws(region="us-east-2")) == [
        (
            "source.catalog_uri",
            "is a catalog in eu-west-1, and the deployment is in us-east-2: the job reads the files in its own "
            'region. Set aws.region = "eu-west-1"',
        )
    ]


def test_a_source_is_named_completely_and_once():
    registry = {"schema_registry_url": "https://x.confluent.cloud", "schema_registry_key_secret": "acme/sr"}
    assert find_in_source(attrs.evolve(GLUE, **registry)) == find_in_source(GLUE) == []
    for missing, present in (tuple(registry), tuple(reversed(registry))):
        assert find_in_source(attrs.evolve(GLUE, **{present: registry[present]})) == [
            (
                f"source.{missing}",
                "is missing. To read schemas with their tags, set schema_registry_url and "
                "schema_registry_key_secret; remove both to take schemas from the tables",
            )
        ]
    missing = (
        "is missing. For tables in Glue, set glue_database and tableflow_bucket; for tables in Confluent's "
        "storage, set catalog_uri, cluster_id, tableflow_key_secret"
    )
    for names, kept in (
        (("glue_database", "tableflow_bucket"), GLUE),
        (("catalog_uri", "cluster_id", "tableflow_key_secret"), CATALOG),
    ):
        for name in names:
            assert find_in_source(attrs.evolve(kept, **{name: None})) == [(f"source.{name}", missing)]
    assert find_in_source(Source()) == [
        ("source.glue_database", missing),
        ("source.tableflow_bucket", missing),
    ]
    key = "arn:aws:kms:eu-west-1:111122223333:key/1234"
    both = attrs.evolve(CATALOG, glue_database="lkc-a", tableflow_bucket="acme-tables", kms_key=key)
    assert find_in_source(both) == [
        (
            f"source.{name}",
            "can't be combined with catalog_uri: tables in Confluent's storage are neither in Glue nor in your "
            "bucket. Remove it, or write two deployment files",
        )
        for name in ("kms_key", "glue_database", "tableflow_bucket")
    ]
