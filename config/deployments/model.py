"""What a deployment is: the model of `project/deployments/*.toml`.

The file holds decisions and names, never a secret. `check` checks all of it before anything is created.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import attrs

from config.deployments import validation
from config.deployments.account_model import Encryption, Network
from config.deployments.confluent_model import Confluent, Statement, Topic
from config.deployments.export_model import Export
from config.deployments.mail_model import Mail
from config.deployments.snowflake_model import Snowflake
from config.deployments.source_model import Source
from config.toml_model import Form, setting

#: The days for which CloudWatch can keep logs.
LogDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]


@attrs.frozen
class Identity:
    """`[deployment]`. All names are built from name, stage and region."""

    name: str = setting("The deployment's name.", form=validation.NAME)
    stage: str = setting(
        "dev, prod or any other: the name of the file, which `-c stage=` selects.", form=validation.STAGE
    )
    owner: str = setting("The team or role that owns the deployment.", check=validation.tag_value)
    tags: dict[str, str] = setting(
        "Further tags of all AWS resources, besides project, stage and owner.",
        default=dict,
        check=validation.tag_value,
    )
    on_destroy: Literal["keep", "delete"] = setting(
        "What happens to data on `cdk destroy`. keep: buckets, aggregates and the pseudonymisation key stay. "
        "delete: nothing stays.",
        default="keep",
    )


@attrs.frozen
class Aws:
    """`[aws]`"""

    region: str = setting("The AWS region, also that of the Kafka cluster.", check=validation.region)
    account: str | None = setting(
        "The AWS account id. If it is set, CDK refuses to deploy to another account.",
        default=None,
        form=validation.ACCOUNT_ID,
    )
    permissions_boundary: str | None = setting(
        "ARN of the managed policy that every IAM role gets as its permissions boundary.",
        default=None,
        form=validation.POLICY_ARN,
    )
    iam_path: str | None = setting(
        "Path of every IAM role, such as /team/. Once deployed, it can't be changed: roles with fixed "
        "names can't be replaced.",
        default=None,
        form=validation.IAM_PATH,
    )
    bootstrap_qualifier: str | None = setting(
        "Qualifier with which the account was bootstrapped for CDK, if it isn't CDK's own.",
        default=None,
        form=validation.QUALIFIER,
    )
    log_retention_days: LogDays = setting("Days for which logs are kept.", default=30)
    glue_version: Literal["5.1", "6.0"] = setting(
        "The version of AWS Glue: 5.1 has Spark 3.5, 6.0 has Spark 4.1. The job gives the same files on "
        "both.",
        default="5.1",
    )
    glue_worker_type: Literal["G.1X", "G.2X", "G.4X"] = setting(
        "The worker type of the export jobs.", default="G.1X"
    )
    glue_workers: int = setting(
        "Number of workers of a run, including the driver.", default=2, minimum=2, maximum=100
    )
    glue_timeout_minutes: int = setting(
        "Minutes after which Glue stops a run. The run itself ends five minutes earlier: it then begins no "
        "further window.",
        default=60,
        minimum=10,
        maximum=2880,
    )
    lambda_python: Literal["3.11", "3.12", "3.13", "3.14"] = setting(
        "Python version of the functions. All tests run on the default, which AWS supports until June "
        "2027. The CI templates also run the functions' own tests on each of the others.",
        default="3.11",
    )
    lambda_memory_mb: int = setting("Memory of the functions in MB.", default=512, minimum=256, maximum=10240)
    lambda_timeout_seconds: int = setting(
        "Timeout of a function. Longer work continues in the next invocation.",
        default=120,
        minimum=90,
        maximum=840,
    )
    tableflow_bucket: str | None = setting(
        "Name of the bucket that Tableflow writes to. It is created, so it must not exist. "
        "Without a name, CloudFormation generates one.",
        default=None,
        check=validation.bucket_name,
    )
    lake_bucket: str | None = setting(
        "Name of the bucket for exports, query results and aggregates. It is created, so it must not exist.",
        default=None,
        check=validation.bucket_name,
    )
    existing_tableflow_bucket: str | None = setting(
        "Name of a bucket that exists, for Tableflow alone. Lakeferry never empties it, and never changes "
        "its settings.",
        default=None,
        check=validation.bucket_name,
    )
    existing_lake_bucket: str | None = setting(
        "Name of a bucket that exists, for exports, query results and aggregates. All keys then begin with "
        "the deployment's name and stage. Lakeferry never empties it, and gives it no lifecycle rules.",
        default=None,
        check=validation.bucket_name,
    )
    lake_formation: bool = setting(
        "Whether Lake Formation governs the account's catalog. Each role then gets the permissions of Lake "
        "Formation that it needs. The role with which CloudFormation deploys must be a data lake "
        "administrator.",
        default=False,
    )
    athena_readers: list[str] = setting(
        "ARNs of roles and users who may query the tables with Athena and see the columns that aren't "
        "personal. This needs `lake_formation`, and a bucket of tables that is created.",
        default=list,
        form=validation.PRINCIPAL_ARN,
    )
    pseudonym_secret: str | None = setting(
        "Name of an existing secret with the pseudonymisation key, such as one that an earlier deployment "
        "kept. Without it, a new key is generated, and pseudonyms differ from earlier ones.",
        default=None,
        form=validation.SECRET_NAME,
    )


@attrs.frozen
class Rotation:
    """`[rotation]`"""

    every_days: int = setting("Days between two rotations of a key.", default=30, minimum=1, maximum=365)
    keep: int = setting(
        "Largest number of valid keys of a secret between two rotations.", default=2, minimum=2, maximum=4
    )
    grace_days: int = setting(
        "Days for which a replaced key stays valid. It is revoked within six hours after them.",
        default=7,
        minimum=1,
        maximum=180,
    )


@attrs.frozen
class Alerts:
    """`[alerts]`"""

    engineers: list[str] = setting(
        "Addresses that get alarms. The first ten also get the mails of the AWS budget.",
        check=validation.mail_address,
    )
    table_stale_hours: int = setting(
        "Hours without a new snapshot after which a table counts as stale.", default=3, minimum=1, maximum=144
    )
    key_age_days: int | None = setting(
        "Age of a rotated key that raises an alarm. The default is one and a half times rotation.every_days.",
        default=None,
        minimum=1,
        maximum=1000,
    )
    deployer_key_age_days: int = setting(
        "Age of a key that you created manually that raises an alarm: Confluent's Cloud key and the "
        "Snowflake deployer's.",
        default=180,
        minimum=1,
        maximum=1000,
    )
    monthly_budget_usd: int = setting(
        "Monthly AWS costs in US dollars that raise an alarm.", default=100, minimum=1, maximum=1_000_000
    )
    budget: bool | None = setting(
        "Whether there is an AWS budget. By default there is one, except in regions where CloudFormation "
        "has no budgets. Some organizations don't allow budgets in member accounts. Alarms don't depend on "
        "it.",
        default=None,
    )
    dashboard: bool = setting(
        "Whether there is a dashboard in CloudWatch. Alarms don't depend on it.", default=True
    )


#: Text, because a number of TOML could not keep its decimal places.
_PRICE: Final = Form(r"[0-9]{1,6}(\.[0-9]{1,8})?", 'a price in US dollars as text, such as "0.12"')


@attrs.frozen
class Prices:
    """`[prices]`"""

    tableflow_topic_hour: str | None = setting(
        "What Confluent bills for a topic with Tableflow in an hour.", default=None, form=_PRICE
    )
    tableflow_gb: str | None = setting(
        "What Confluent bills for a GB that Tableflow processes.", default=None, form=_PRICE
    )
    connector_task_hour: str | None = setting(
        "What Confluent bills for a task of a Datagen connector in an hour.", default=None, form=_PRICE
    )
    connector_gb: str | None = setting(
        "What Confluent bills for a GB that a connector transfers.", default=None, form=_PRICE
    )


@attrs.frozen
class Deployment:
    identity: Identity = setting(
        "Name, stage, owner, tags, and what happens to data on destroy.", name="deployment"
    )
    aws: Aws = setting("Account, region, Glue, Lambda, buckets.")
    network: Network | None = setting(
        "The VPC in which functions and jobs run. Without it, they run in AWS's own network.", default=None
    )
    encryption: Encryption = setting("KMS keys that exist.", default=Encryption())
    confluent: Confluent | None = setting(
        "Kafka, Flink and Tableflow, which Lakeferry creates. Either this or `[source]`.", default=None
    )
    source: Source | None = setting(
        "Tables that exist already. Lakeferry then creates exports only.", default=None
    )
    topics: list[Topic] = setting("The topics.", default=list)
    statements: list[Statement] = setting("The Flink SQL statements.", default=list)
    snowflake: Snowflake | None = setting("What is created in Snowflake. Without it, nothing.", default=None)
    rotation: Rotation = setting("How keys are rotated.", default=Rotation())
    exports: list[Export] = setting("The exports: schedule and recipients.", default=list)
    mail: Mail | None = setting(
        "How mails to recipients are sent. Without it, SNS sends them as plain text.", default=None
    )
    alerts: Alerts = setting("Who gets alarms, and the limits that raise them.")
    prices: Prices = setting(
        "Your prices of what Confluent doesn't publish, for `lakeferry cost` only.", default=Prices()
    )

    @property
    def prefix(self) -> str:
        """Return the prefix of names.

        A stage has no hyphen, so no two deployments of an account and region share it.
        """
        return f"{self.identity.name}-{self.identity.stage}"

    @property
    def regional_prefix(self) -> str:
        """Return the prefix of names that are unique in the whole account, such as those of roles."""
        return f"{self.prefix}-{self.aws.region}"

    def role_name(self, vendor: str) -> str:
        """Return the name of the role that `tableflow` or `snowflake` assumes.

        It is fixed, because the vendor's object is created before the role, with its ARN.
        """
        return f"{self.regional_prefix}-{vendor}"

    def role_resource(self, vendor: str) -> str:
        """Return the last part of that role's ARN: role, path and name."""
        return f"role{self.aws.iam_path or '/'}{self.role_name(vendor)}"

    @property
    def sns_exports(self) -> list[Export]:
        """Return the exports whose recipients get mails from SNS, which they have to confirm."""
        return [] if self.mail else self.exports

    @property
    def exports_with_links(self) -> list[Export]:
        """Return the exports whose mails have links that open without an AWS login."""
        return [export for export in self.exports if export.link_days and export.recipients]

    @property
    def proxy(self) -> str:
        """Return the proxy's address, "" for none."""
        if self.network is None:
            return ""
        return self.network.proxy or ""

    @property
    def lake_root(self) -> str:
        """Return what all keys in the lake bucket begin with: "" in a bucket of the deployment's own."""
        return f"{self.prefix}/" if self.aws.existing_lake_bucket else ""

    @property
    def has_budget(self) -> bool:
        """Return whether there is an AWS budget. A rule refuses one where there can be none."""
        budget = self.alerts.budget
        return self.aws.region not in validation.NO_BUDGETS if budget is None else budget

    @property
    def uses_snowflake(self) -> bool:
        return self.snowflake is not None and self.snowflake.enabled

    @property
    def shows_aggregates(self) -> bool:
        """Return whether Snowflake shows the tables of aggregates too, which exports keep."""
        wanted = self.snowflake is not None and self.snowflake.enabled and self.snowflake.aggregates
        return wanted and bool(self.exports)

    @property
    def uses_existing_cluster(self) -> bool:
        """Return whether the Kafka cluster is somebody else's."""
        return self.confluent is not None and self.confluent.cluster_id is not None

    @property
    def existing_glue_database(self) -> str | None:
        """Return the Glue database of tables that somebody else's integration writes. Without one, the
        deployment's integration names it after the cluster that it creates.
        """
        if self.source:
            return self.source.glue_database
        return self.confluent.glue_database if self.confluent else None

    @property
    def created_confluent(self) -> Confluent:
        """Return `[confluent]`. Only for code of deployments that have it."""
        assert self.confluent is not None
        return self.confluent

    @property
    def keeps_data(self) -> bool:
        return self.identity.on_destroy == "keep"

    @property
    def tables(self) -> list[Topic]:
        """Return the topics that Tableflow writes as tables."""
        return [topic for topic in self.topics if topic.tableflow or self.source]

    @property
    def tables_in_glue(self) -> list[Topic]:
        if self.source:
            return self.tables if self.source.glue else []
        return [topic for topic in self.tables if topic.tableflow and topic.tableflow.in_glue]

    @property
    def managed_tables(self) -> list[Topic]:
        """Return the tables in Confluent's storage."""
        if self.source:
            return self.tables if self.source.catalog else []
        return [topic for topic in self.tables if topic.tableflow and topic.tableflow.is_managed]

    @property
    def manual_secrets(self) -> list[str]:
        """Return the secrets with keys of Confluent that people fill."""
        if self.source:
            return list(self.source.brought_keys.values())
        return self.confluent.manual_secrets if self.confluent else []

    @property
    def uses_own_bucket(self) -> bool:
        """Return whether Tableflow writes tables to the deployment's bucket."""
        return any(topic.tableflow and not topic.tableflow.is_managed for topic in self.tables)


def to_pascal_case(name: str) -> str:
    """Return the beginning of logical ids in the templates: stock_trades.v1 is StockTradesV1, and * is
    All.
    """
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[._-]", name.replace("*", "All")))
