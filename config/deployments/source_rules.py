"""Rules about `[source]`: tables that exist, which a deployment reads and never changes. They are rules like
those of rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.deployments.model import Deployment
from config.deployments.source_model import Source
from config.deployments.sources import Sources

Finding = tuple[str, str]
#: The keys of a topic that say what Lakeferry creates or changes in Confluent Cloud.
_KEYS_OF_CREATED_TOPICS: Final = ("existing", "config", "datagen", "statement", "adopt", "tableflow")


def tables_have_one_origin(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """The file has either `[confluent]` or `[source]`."""
    if deployment.confluent and deployment.source:
        yield (
            "source",
            "can't be combined with [confluent]: the first names tables that exist, the second creates them. "
            "Keep one. For both, write two deployment files",
        )
    if not deployment.confluent and not deployment.source:
        yield (
            "confluent",
            "is missing, and so is [source]. Add [confluent] to create a cluster with its tables, or "
            "[source] to export tables that Tableflow writes already",
        )


def source_is_only_read(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """With `[source]`, topics have only `name`, `schema` and `partitions`, and there are no statements, no
    Snowflake and no `aws.tableflow_bucket`. KMS key and catalog are in the deployment's region.
    """
    source = deployment.source
    if source is None:
        return
    for index, topic in enumerate(deployment.topics):
        for key in _KEYS_OF_CREATED_TOPICS:
            if getattr(topic, key):
                yield (
                    f"topics[{index}].{key}",
                    f"{topic.name} exists already, and with [source] Lakeferry only reads it. Remove {key}",
                )
    if deployment.statements:
        yield (
            "statements",
            "need [confluent]: with [source], nothing is created in Confluent Cloud. Remove them",
        )
    if deployment.uses_snowflake:
        yield (
            "snowflake",
            "needs [confluent]: with [source], Lakeferry deploys exports only. Remove the table, or set "
            "enabled = false",
        )
    if deployment.aws.tableflow_bucket:
        yield (
            "aws.tableflow_bucket",
            "names a bucket that is created, and with [source] the tables have a bucket. Write its name to "
            "source.tableflow_bucket",
        )
    yield from _find_half_sources(source)
    if source.catalog_uri and f"//tableflow.{deployment.aws.region}." not in source.catalog_uri:
        region = source.catalog_uri.split(".")[1]
        yield (
            "source.catalog_uri",
            f"is a catalog in {region}, and the deployment is in {deployment.aws.region}: the job reads the "
            f'files in its own region. Set aws.region = "{region}"',
        )
    if source.kms_key and source.kms_key.split(":")[3] != deployment.aws.region:
        yield (
            "source.kms_key",
            f"is a key in {source.kms_key.split(':')[3]}, and the bucket is in {deployment.aws.region}: S3 "
            "encrypts with keys of the bucket's region",
        )


def _find_half_sources(source: Source) -> Iterator[Finding]:
    """Find keys that are missing, and keys of both kinds of tables in one file."""
    registry = {
        "schema_registry_url": source.schema_registry_url,
        "schema_registry_key_secret": source.schema_registry_key_secret,
    }
    if any(registry.values()):
        for key in [key for key, value in registry.items() if not value]:
            yield (
                f"source.{key}",
                f"is missing. To read schemas with their tags, set {' and '.join(registry)}; remove both to "
                "take schemas from the tables",
            )
    in_glue = {"glue_database": source.glue_database, "tableflow_bucket": source.tableflow_bucket}
    managed = {
        "catalog_uri": source.catalog_uri,
        "cluster_id": source.cluster_id,
        "tableflow_key_secret": source.tableflow_key_secret,
    }
    is_managed = any(managed.values())
    wanted = managed if is_managed else in_glue
    unwanted = {"kms_key": source.kms_key, **in_glue} if is_managed else {}
    for key in [key for key, value in wanted.items() if not value]:
        yield (
            f"source.{key}",
            f"is missing. For tables in Glue, set {' and '.join(in_glue)}; for tables in Confluent's "
            f"storage, set {', '.join(managed)}",
        )
    for key in [key for key, value in unwanted.items() if value]:
        yield (
            f"source.{key}",
            "can't be combined with catalog_uri: tables in Confluent's storage are neither in Glue nor in "
            "your bucket. Remove it, or write two deployment files",
        )
