"""The part of a deployment file about Confluent Cloud: the cluster, topics, Tableflow's tables and Flink's
statements.
"""

from __future__ import annotations

from typing import Final, Literal

import attrs

from config.deployments import validation
from config.forms import NAME, name_table
from config.toml_model import setting

_PARTITIONS: Final = 6
Cfu = Literal[5, 10, 20, 30, 40, 50]


@attrs.frozen
class Confluent:
    """`[confluent]`"""

    cloud_key_secret: str = setting(
        'Name of the secret with the Cloud API key, created before the deployment: {"apiKey": …, '
        '"apiSecret": …}.',
        form=validation.SECRET_NAME,
    )
    environment_id: str | None = setting(
        "Id of an existing environment, env-…. Without it, an environment is created.",
        default=None,
        form=validation.ENVIRONMENT_ID,
    )
    environment_name: str | None = setting(
        "Name of that environment, which is the name of Flink's catalog.", default=None
    )
    cluster_id: str | None = setting(
        "Id of an existing Kafka cluster in that environment, lkc-…. It is never changed or deleted. Without "
        "it, a cluster is created.",
        default=None,
        form=validation.CLUSTER_ID,
    )
    glue_database: str | None = setting(
        "Glue database to which the existing cluster's integration with Glue writes. It has the cluster's id "
        "as its name, unless somebody chose another one. The integration is used as it is: a cluster can "
        "have only one.",
        default=None,
        form=validation.GLUE_DATABASE,
    )
    kafka_key_secret: str | None = setting(
        "Name of an existing secret with a Kafka key of yours for the existing cluster, used instead of an "
        "account of Lakeferry's own. Keys that you bring aren't rotated.",
        default=None,
        form=validation.SECRET_NAME,
    )
    schema_registry_key_secret: str | None = setting(
        "The same for a key of Schema Registry.", default=None, form=validation.SECRET_NAME
    )
    tableflow_key_secret: str | None = setting(
        "The same for a Tableflow key. Its owner must be CloudClusterAdmin if the cluster has no integration "
        "with Glue yet.",
        default=None,
        form=validation.SECRET_NAME,
    )
    flink_key_secret: str | None = setting(
        "The same for a Flink key. Its owner is the one that runs the statements.",
        default=None,
        form=validation.SECRET_NAME,
    )
    stream_governance: Literal["ESSENTIALS", "ADVANCED"] = setting(
        "Stream Governance package of a new environment.", default="ESSENTIALS"
    )
    cluster_type: str = setting(
        "Type of the Kafka cluster.", default="Standard", form=validation.CLUSTER_TYPE
    )
    availability: Literal["SINGLE_ZONE", "MULTI_ZONE"] = setting(
        "How many zones the cluster spans.", default="SINGLE_ZONE"
    )
    max_ecku: int | None = setting(
        "Largest number of elastic units (eCKU) of the cluster. Once set, it can be changed, not removed.",
        default=None,
        minimum=1,
        maximum=50,
    )
    deletion_protection: bool = setting(
        "Whether the cluster and its records are protected: Confluent refuses to delete the cluster, and "
        "Lakeferry its topics and the tables of Flink's statements.",
        default=False,
    )
    flink_max_cfu: Cfu = setting("Largest number of Confluent Flink units (CFU) at once.", default=5)

    @property
    def brought_keys(self) -> dict[str, str]:
        """Return the secrets of keys that you bring, by service."""
        secrets = {
            "kafka": self.kafka_key_secret,
            "schema_registry": self.schema_registry_key_secret,
            "tableflow": self.tableflow_key_secret,
            "flink": self.flink_key_secret,
        }
        return {service: secret for service, secret in secrets.items() if secret}

    @property
    def manual_secrets(self) -> list[str]:
        """Return the secrets that people fill: that of the Cloud key, and those of keys that they bring."""
        return [self.cloud_key_secret, *self.brought_keys.values()]


@attrs.frozen
class Tableflow:
    """`[topics.tableflow]`: the topic as an Iceberg table."""

    storage: Literal["own_bucket", "managed"] = setting(
        "own_bucket, or managed: Confluent's storage. Exports read such a table through Tableflow's catalog; "
        "Glue, Athena and Snowflake can't.",
        default="own_bucket",
    )
    formats: list[Literal["ICEBERG", "DELTA"]] = setting(
        "Table formats. Only ICEBERG, the default, can be deployed: nothing that is deployed reads Delta "
        "tables.",
        default=list,
    )
    write_mode: Literal["APPEND", "UPSERT"] = setting(
        "Tableflow's write mode. It follows from the topic's cleanup.policy; it is declared so that it can "
        "be checked.",
        default="APPEND",
    )
    snapshots_days: int = setting(
        "Days for which old snapshots are kept.", default=7, minimum=1, maximum=3650
    )
    rows_days: int | None = setting(
        "Days after which Tableflow removes rows; never, if it isn't set. No export may publish a window "
        "again after that. Once deployed, it can be changed, but not removed.",
        default=None,
        minimum=30,
        maximum=36500,
    )
    on_error: Literal["SUSPEND", "SKIP", "LOG"] = setting(
        "What Tableflow does with a record that it can't write.", default="SUSPEND"
    )
    error_log_topic: str = setting(
        "The topic for such records, with on_error = LOG.", default="error_log", form=validation.LOG_TOPIC
    )
    metadata_columns: Literal["DEFAULT", "PORTABLE"] = setting(
        "Naming scheme of the columns with Kafka's metadata.", default="DEFAULT"
    )
    shown_in_glue: bool | None = setting(
        "Whether the table is in the Glue Data Catalog, as a table in your bucket is by default. Tableflow "
        "registers all of those there, or none.",
        name="in_glue",
        default=None,
    )
    snowflake_table: str | None = setting(
        "Name of the Snowflake table that reads it. Without a name, there is none.",
        default=None,
        form=validation.SNOWFLAKE_NAME,
    )

    @property
    def is_managed(self) -> bool:
        """Return whether Confluent stores the table."""
        return self.storage == "managed"

    @property
    def in_glue(self) -> bool:
        return self.shown_in_glue is not False and not self.is_managed


@attrs.frozen
class Topic:
    """`[[topics]]`"""

    name: str = setting(
        "Name of the topic, and, in lower case, of its table in Glue.", check=validation.topic_name
    )
    existing: bool = setting(
        "Whether the topic exists already in the existing cluster. It is never changed or deleted, and its "
        "schema stays as it is; only Tableflow is added.",
        default=False,
    )
    partitions: int | None = setting(
        f"Number of partitions. It can be raised, never lowered. The default is {_PARTITIONS}; with "
        "`[source]`, it isn't known.",
        default=None,
        minimum=1,
        maximum=1000,
    )
    config: dict[str, str] = setting('Topic settings of Kafka, such as "retention.ms".', default=dict)
    schema_file: str | None = setting(
        "File with the Avro schema of the values. The default is project/topics/<name>.avsc, if that file "
        "exists.",
        name="schema",
        default=None,
    )
    datagen: str | None = setting(
        'For a topic that a Datagen connector writes: the name of a quickstart, or "schema" for data '
        "generated from the schema.",
        default=None,
        check=validation.datagen,
    )
    datagen_interval_ms: int = setting(
        "Longest pause between two records of Datagen, in milliseconds.",
        default=1000,
        minimum=1,
        maximum=3600000,
    )
    statement: str | None = setting(
        "For a topic that a Flink statement creates and writes: the statement's name.", default=None
    )
    adopt: list[Literal["topic", "subject", "tableflow"]] = setting(
        "What exists already and is this deployment's own, for example because its stack was deleted by "
        "hand. It is then changed and deleted like everything else; a subject only so that it can be "
        "restored.",
        default=list,
    )
    tableflow: Tableflow | None = setting(
        "How Tableflow writes the topic as a table. Without it, there is no table.", default=None
    )

    @property
    def table(self) -> str:
        """Return the name of its table in Glue."""
        return name_table(self.name)

    @property
    def new_partitions(self) -> int:
        """Return the number of partitions with which Lakeferry creates the topic."""
        return self.partitions or _PARTITIONS


@attrs.frozen
class Statement:
    """`[[statements]]`"""

    name: str = setting(
        "Name of the folder in `project/flink/` with create.sql, undo.sql and, optionally, properties.toml.",
        form=NAME,
    )
    after: list[str] = setting("Names of statements whose tables it reads.", default=list)
    on_edit: Literal["go_on", "drop_and_reread"] = setting(
        "What an edit of create.sql or properties.toml does. `go_on`, the default: the new text goes on "
        "where the old one stopped, and the table keeps its rows; what isn't stateless is refused. "
        "`drop_and_reread`: undo.sql drops the table, and the new text reads its topics from the beginning.",
        default="go_on",
    )
