"""What a deployment is: the model of `deployments/*.toml`.

The file holds decisions and names, never a secret. What it says is checked in `check`, all of it before anything is made.
"""

from __future__ import annotations

from datetime import date
from typing import Literal

import attrs

from deployments import forms
from exports import cron
from exports.contract import implausible_day, zone_problem
from exports.toml_model import setting

#: How long CloudWatch can keep logs, in days.
LogDays = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653]
Cfu = Literal[5, 10, 20, 30, 40, 50]


@attrs.frozen
class Identity:
    """`[deployment]`. Names of everything are made of name, stage and region."""

    name: str = setting("What the deployment is called.", pattern=forms.NAME)
    stage: str = setting("dev, prod or any other; `-c stage=` chooses the file of this name.", pattern=forms.STAGE)
    owner: str = setting("Whom to ask: a team or a role.")
    tags: dict[str, str] = setting(
        "Further tags of everything in AWS, beside project, stage and owner.", default=dict, check=forms.tag_value
    )
    on_destroy: Literal["keep", "delete"] = setting(
        "What happens to data on `cdk destroy`. keep: buckets, tables of ours and the pseudonymisation key stay. "
        "delete: nothing stays.",
        default="keep",
    )


@attrs.frozen
class Aws:
    """`[aws]`"""

    region: str = setting("The region, the same as the Kafka cluster's.", check=forms.region)
    account: str | None = setting(
        "The account's twelve digits; then CDK refuses to deploy to another one.", default=None, pattern=r"[0-9]{12}"
    )
    log_retention_days: LogDays = setting("How long logs stay.", default=30)
    glue_version: Literal["5.1"] = setting("Glue's version. The job is made for this one.", default="5.1")
    glue_worker_type: Literal["G.1X", "G.2X", "G.4X"] = setting("How large a worker of the export job is.", default="G.1X")
    glue_workers: int = setting("How many workers, the driver among them.", default=2, minimum=2, maximum=100)
    glue_timeout_minutes: int = setting("After how long a run is ended.", default=60, minimum=5, maximum=2880)
    lambda_python: Literal["3.11", "3.12", "3.13", "3.14"] = setting(
        "Python of the functions. The default is what all tests run on; AWS supports it until June 2027. The CI templates "
        "run the functions' own tests on each of the others too.",
        default="3.11",
    )
    lambda_memory_mb: int = setting("Memory of the functions.", default=512, minimum=256, maximum=10240)
    lambda_timeout_seconds: int = setting(
        "How long one call of a function may take. Longer work goes on in the next call.", default=120, minimum=90, maximum=840
    )
    tableflow_bucket: str | None = setting(
        "Name of the bucket that Tableflow writes to; CloudFormation chooses one where nothing is said. "
        "It is made, so it must not exist.",
        default=None,
        check=forms.bucket_name,
    )
    lake_bucket: str | None = setting(
        "Name of the bucket for exports, query results and aggregates; as above.", default=None, check=forms.bucket_name
    )
    pseudonym_secret: str | None = setting(
        "Name of a secret that exists and holds the pseudonymisation key, as one that an earlier deployment kept. "
        "Without it a new key is made, and pseudonyms differ from those of before.",
        default=None,
        pattern=forms.SECRET_NAME,
    )


@attrs.frozen
class Confluent:
    """`[confluent]`"""

    cloud_key_secret: str = setting(
        'Name of the secret with the Cloud API key, which you made before: {"apiKey": …, "apiSecret": …}.',
        pattern=forms.SECRET_NAME,
    )
    environment_id: str | None = setting(
        "An environment that exists, env-…; a new one is made where nothing is said.", default=None, pattern=r"env-[a-z0-9]+"
    )
    environment_name: str | None = setting("The name of that environment, which Flink calls its catalog.", default=None)
    stream_governance: Literal["ESSENTIALS", "ADVANCED"] = setting("Package of a new environment.", default="ESSENTIALS")
    cluster_type: Literal["Basic", "Standard"] = setting("Type of the Kafka cluster.", default="Standard")
    availability: Literal["SINGLE_ZONE", "MULTI_ZONE"] = setting("How many zones the cluster spans.", default="SINGLE_ZONE")
    max_ecku: int | None = setting("Most elastic units the cluster may grow to.", default=None, minimum=1, maximum=50)
    deletion_protection: bool = setting("Whether Confluent refuses to delete the cluster.", default=False)
    flink_max_cfu: Cfu = setting("Most Flink units at once.", default=5)


@attrs.frozen
class Tableflow:
    """`[topics.tableflow]`: the topic as an Iceberg table."""

    storage: Literal["own_bucket", "managed"] = setting(
        "own_bucket, or Confluent's own storage, which neither Glue nor exports can read.", default="own_bucket"
    )
    formats: list[Literal["ICEBERG", "DELTA"]] = setting(
        "Formats of the table; only ICEBERG, which is also the default, can be deployed: nothing here reads Delta tables.",
        default=list,
    )
    write_mode: Literal["APPEND", "UPSERT"] = setting(
        "What Tableflow will do, which follows from the topic's cleanup.policy: said here so that it can be checked.",
        default="APPEND",
    )
    snapshots_days: int = setting("How long old snapshots stay.", default=7, minimum=1, maximum=3650)
    rows_days: int | None = setting(
        "After how many days Tableflow removes rows; never without it. Exports must be done with a window by then.",
        default=None,
        minimum=30,
        maximum=36500,
    )
    on_error: Literal["SUSPEND", "SKIP", "LOG"] = setting("What happens at a record that can't be written.", default="SUSPEND")
    error_log_topic: str = setting("The topic that takes such records, for LOG.", default="error_log", pattern=forms.LOG_TOPIC)
    metadata_columns: Literal["DEFAULT", "PORTABLE"] = setting("How columns of Kafka's metadata are named.", default="DEFAULT")
    in_glue: bool = setting(
        "Whether the table is shown in the Glue Data Catalog. Tableflow shows all tables of a cluster there, or none.",
        default=True,
    )
    snowflake_table: str | None = setting(
        "Name of a table in Snowflake that shows it; none where nothing is said.", default=None, pattern=forms.SNOWFLAKE_NAME
    )


@attrs.frozen
class Topic:
    """`[[topics]]`"""

    name: str = setting("The topic's name, and the table's.", check=forms.topic_name)
    partitions: int = setting("How many partitions. They can grow, never shrink.", default=6, minimum=1, maximum=1000)
    config: dict[str, str] = setting('Kafka\'s settings of the topic, such as "retention.ms".', default=dict)
    schema_file: str | None = setting(
        "The Avro schema of its values; topics/<name>.avsc where that file exists.", name="schema", default=None
    )
    datagen: str | None = setting(
        'Who writes it, where it is a Datagen connector: the quickstart\'s name, or "schema" for data made from the schema.',
        default=None,
        check=forms.datagen,
    )
    datagen_interval_ms: int = setting("Longest pause between two records of Datagen.", default=1000, minimum=1, maximum=3600000)
    statement: str | None = setting("Who makes and writes it, where it is one of the statements.", default=None)
    tableflow: Tableflow | None = setting("Whether and how it becomes a table.", default=None)


@attrs.frozen
class Statement:
    """`[[statements]]`"""

    name: str = setting(
        "The folder below `flink/` with create.sql, undo.sql and, where it has some, properties.toml.",
        pattern=r"[a-z][a-z0-9_]{0,62}",
    )
    after: list[str] = setting("Statements whose tables it reads.", default=list)


@attrs.frozen
class Snowflake:
    """`[snowflake]`"""

    enabled: bool = setting("Whether anything is made in Snowflake.", default=True)
    account: str = setting("The account's name, organization-account.", pattern=r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")
    key_secret: str = setting(
        "Name of the secret with the deployer's key pair, which you made before.",
        pattern=forms.SECRET_NAME,
    )
    user: str = setting("The deployer's user.", default="LAKEFERRY", pattern=forms.SNOWFLAKE_NAME)
    role: str = setting("The role that the deployer works in.", default="LAKEFERRY", pattern=forms.SNOWFLAKE_NAME)
    deployer_warehouse: str = setting("The warehouse that the deployer uses.", default="LAKEFERRY", pattern=forms.SNOWFLAKE_NAME)
    warehouse: str | None = setting("Name of the readers' warehouse.", default=None, pattern=forms.SNOWFLAKE_NAME)
    warehouse_size: Literal["XSMALL", "SMALL", "MEDIUM", "LARGE"] = setting("Its size.", default="XSMALL")
    auto_suspend_seconds: int = setting("After how long without a query it stops.", default=60, minimum=30, maximum=3600)
    database: str | None = setting("Name of the database.", default=None, pattern=forms.SNOWFLAKE_NAME)
    schema: str | None = setting("Name of the schema.", default=None, pattern=forms.SNOWFLAKE_NAME)
    user_name: str | None = setting("Name of the user that reads.", default=None, pattern=forms.SNOWFLAKE_NAME)
    refresh_seconds: int = setting("Seconds between two looks for new snapshots.", default=60, minimum=30, maximum=86400)
    linked_database: bool = setting(
        "Whether there is also a database that shows all tables by themselves. The reader may select from those that it has when "
        "it is deployed; `GRANT SELECT ON ALL ICEBERG TABLES IN DATABASE` lets it read later ones.",
        default=False,
    )


@attrs.frozen
class Rotation:
    """`[rotation]`"""

    every_days: int = setting("How often keys are replaced.", default=30, minimum=1, maximum=365)
    keep: int = setting("How many keys of a secret may live between two rotations.", default=2, minimum=2, maximum=4)
    grace_days: int = setting(
        "How many days a replaced key stays valid. It is revoked within six hours after them.", default=7, minimum=1, maximum=180
    )


@attrs.frozen
class Export:
    """`[[exports]]`"""

    contract: str = setting("The export's name, as in exports/<name>.toml.", pattern=r"[a-z][a-z0-9_]{0,62}")
    cron: str = setting("When it runs: minute, hour, day of month, month, day of week, year.", check=cron.problem)
    zone: str = setting("The time zone of `cron`, from the tz database.", check=zone_problem)
    recipients: list[str] = setting("Who gets the mail.", default=list, check=forms.mail_address)
    first_day: date | None = setting(
        "A day, in the contract's zone, of the first window that this deployment exports: the first one that it has events of. "
        "Without it, the contract's own.",
        default=None,
        check=implausible_day,
    )
    late_after_hours: int = setting(
        "How many hours after its time a run without a result counts as late.", default=6, minimum=1, maximum=144
    )
    keep_days: int = setting("After how many days a file is removed.", default=730, minimum=30, maximum=36500)


@attrs.frozen
class Alerts:
    """`[alerts]`"""

    engineers: list[str] = setting("Who gets alarms.", check=forms.mail_address)
    table_stale_hours: int = setting(
        "After how many hours without a new snapshot a table counts as stale.", default=3, minimum=1, maximum=144
    )
    key_age_days: int | None = setting(
        "At which age a key raises an alarm; half as old again as rotation lets it become, where nothing is said.",
        default=None,
        minimum=1,
        maximum=1000,
    )
    deployer_key_age_days: int = setting(
        "At which age a key that you created by hand raises an alarm: Confluent's Cloud key and the Snowflake deployer's.",
        default=180,
        minimum=1,
        maximum=1000,
    )
    monthly_budget_usd: int = setting("AWS costs of a month that raise an alarm.", default=100, minimum=1, maximum=1_000_000)


@attrs.frozen
class Deployment:
    deployment: Identity = setting("What it is called, whose it is, and what stays of it.")
    aws: Aws = setting("Where, and how large.")
    confluent: Confluent = setting("Kafka, Flink and Tableflow.")
    topics: list[Topic] = setting("The topics.", default=list)
    statements: list[Statement] = setting("The Flink SQL statements.", default=list)
    snowflake: Snowflake | None = setting("What is made in Snowflake; nothing without it.", default=None)
    rotation: Rotation = setting("How keys are replaced.", default=Rotation())
    exports: list[Export] = setting("What is delivered, when and to whom.", default=list)
    alerts: Alerts = setting("Who is told when something is wrong.")

    @property
    def prefix(self) -> str:
        """How names begin. A stage has no hyphen, so no two deployments of an account and region have the same."""
        return f"{self.deployment.name}-{self.deployment.stage}"

    @property
    def regional_prefix(self) -> str:
        """For what is one in the whole account, such as roles."""
        return f"{self.prefix}-{self.aws.region}"

    @property
    def uses_snowflake(self) -> bool:
        return self.snowflake is not None and self.snowflake.enabled

    @property
    def keeps_data(self) -> bool:
        return self.deployment.on_destroy == "keep"

    @property
    def tables(self) -> list[Topic]:
        """Topics that are tables too."""
        return [topic for topic in self.topics if topic.tableflow]

    @property
    def tables_in_glue(self) -> list[Topic]:
        return [topic for topic in self.tables if topic.tableflow and topic.tableflow.in_glue]
