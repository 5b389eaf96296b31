"""The part of the model of `project/deployments/*.toml` that is about Snowflake."""

from __future__ import annotations

from typing import Literal

import attrs

from config.deployments import validation
from config.toml_model import setting


@attrs.frozen
class Snowflake:
    """`[snowflake]`"""

    enabled: bool = setting("Whether anything is created in Snowflake.", default=True)
    account: str = setting("The account's name, organization-account.", form=validation.SNOWFLAKE_ACCOUNT)
    key_secret: str = setting(
        "Name of the secret with the deployer's key pair, created before the deployment.",
        form=validation.SECRET_NAME,
    )
    user: str = setting("The deployer's user.", default="LAKEFERRY", form=validation.SNOWFLAKE_NAME)
    role: str = setting("The deployer's role.", default="LAKEFERRY", form=validation.SNOWFLAKE_NAME)
    deployer_warehouse: str = setting(
        "The deployer's warehouse.", default="LAKEFERRY", form=validation.SNOWFLAKE_NAME
    )
    warehouse: str | None = setting(
        "Name of the readers' warehouse.", default=None, form=validation.SNOWFLAKE_NAME
    )
    warehouse_size: Literal["XSMALL", "SMALL", "MEDIUM", "LARGE"] = setting(
        "Size of the readers' warehouse.", default="XSMALL"
    )
    auto_suspend_seconds: int = setting(
        "Seconds without a query after which the warehouse is suspended.",
        default=60,
        minimum=30,
        maximum=3600,
    )
    database: str | None = setting("Name of the database.", default=None, form=validation.SNOWFLAKE_NAME)
    schema: str | None = setting("Name of the schema.", default=None, form=validation.SNOWFLAKE_NAME)
    views_schema: str = setting(
        "Name of the schema of the views that people use, in the same database.",
        default="VIEWS",
        form=validation.SNOWFLAKE_NAME,
    )
    people_role: str | None = setting(
        "Name of the role that people get. It can use the views, and nothing else.",
        default=None,
        form=validation.SNOWFLAKE_NAME,
    )
    raw_role: str | None = setting(
        "Name of the role that can read the tables with all columns. The deployment grants it to nobody.",
        default=None,
        form=validation.SNOWFLAKE_NAME,
    )
    grant_to_users: list[str] = setting(
        "Users of the account who get the people's role. A name with other characters than letters, digits "
        "and underscores counts as it is written.",
        default=list,
        form=validation.SNOWFLAKE_GRANTEE,
    )
    grant_to_roles: list[str] = setting(
        "Roles of the account that get the people's role.", default=list, form=validation.SNOWFLAKE_GRANTEE
    )
    user_name: str | None = setting(
        "Name of the reader, the user that can only read.", default=None, form=validation.SNOWFLAKE_NAME
    )
    network_policy: str | None = setting(
        "Network policy of the reader, if the account has one that refuses AWS's addresses. The deployer's "
        "role must own it.",
        default=None,
        form=validation.SNOWFLAKE_NAME,
    )
    refresh_seconds: int = setting(
        "Seconds between two checks for new snapshots.", default=60, minimum=30, maximum=86400
    )
    aggregates: bool = setting(
        "Whether the aggregates that exports keep as tables are in Snowflake too, each as a table and, for "
        "people, as a view without columns that come from personal data. The deployment creates the tables "
        "before the first run.",
        default=False,
    )
    linked_database: bool = setting(
        "Whether there is also a catalog-linked database, which shows all tables of the Glue database. The "
        "reader may select from those that exist at the deployment; `GRANT SELECT ON ALL ICEBERG TABLES IN "
        "DATABASE` adds later ones.",
        default=False,
    )
