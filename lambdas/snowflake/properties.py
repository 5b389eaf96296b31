"""The properties of Snowflake's resource types. Stacks set them, and handlers read them.

TYPE is the name in a stack, the outputs are for `Fn::GetAtt`, and a change of a CREATE_ONLY property replaces
the object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import ClassVar, Final, NamedTuple

from lambdas import contract
from lambdas.shared.properties import Properties, prop, properties
from lambdas.snowflake import sql


class NameOutputs(NamedTuple):
    name: str


#: The names of sizes in statements, and their names in the output of SHOW.
WAREHOUSE_SIZES: Final = {
    "XSMALL": "X-Small",
    "SMALL": "Small",
    "MEDIUM": "Medium",
    "LARGE": "Large",
    "XLARGE": "X-Large",
    "XXLARGE": "2X-Large",
    "XXXLARGE": "3X-Large",
    "X4LARGE": "4X-Large",
    "X5LARGE": "5X-Large",
    "X6LARGE": "6X-Large",
}


@properties
class WarehouseProps(Properties[NameOutputs]):
    TYPE: ClassVar[str] = "snowflake_warehouse"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("name",)

    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")
    size: str = prop(
        "Size of the warehouse, which determines its price.", default="XSMALL", one_of=tuple(WAREHOUSE_SIZES)
    )
    auto_suspend_seconds: int = prop(
        "Seconds without a query after which it is suspended and costs nothing.", default=60
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)
        if self.auto_suspend_seconds < 1:
            yield (
                "auto_suspend_seconds",
                "must be at least 1: a warehouse that is never suspended always costs",
            )


@properties
class DatabaseProps(Properties[NameOutputs]):
    TYPE: ClassVar[str] = "snowflake_database"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("name",)

    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)


class SchemaOutputs(NamedTuple):
    name: str
    full_name: str


@properties
class SchemaProps(Properties[SchemaOutputs]):
    TYPE: ClassVar[str] = "snowflake_schema"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("database", "name")

    database: str = prop("The database's name.")
    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)


@properties
class RoleProps(Properties[NameOutputs]):
    TYPE: ClassVar[str] = "snowflake_role"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("name",)

    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)


ROLE: Final = "ROLE"
USAGE: Final = "USAGE"
SELECT: Final = "SELECT"
ROTATE: Final = "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"
TABLES_IN_SCHEMA: Final = "ICEBERG TABLES IN SCHEMA"
TABLES_IN_DATABASE: Final = "ICEBERG TABLES IN DATABASE"
SCHEMAS_IN_DATABASE: Final = "SCHEMAS IN DATABASE"
VIEWS_IN_SCHEMA: Final = "VIEWS IN SCHEMA"
#: Groups to which a grant adds future objects too.
WITH_FUTURE: Final = (TABLES_IN_SCHEMA, VIEWS_IN_SCHEMA)
#: Privileges by object type.
ON: Final[Mapping[str, tuple[str, ...]]] = {
    "WAREHOUSE": (USAGE, "OPERATE", "MONITOR"),
    "DATABASE": (USAGE, "MONITOR"),
    "SCHEMA": (USAGE, "MONITOR"),
    "EXTERNAL VOLUME": (USAGE,),
    "INTEGRATION": (USAGE,),
    "ICEBERG TABLE": (SELECT,),
    "USER": (ROTATE,),
    ROLE: (USAGE,),
    TABLES_IN_SCHEMA: (SELECT,),
    TABLES_IN_DATABASE: (SELECT,),
    SCHEMAS_IN_DATABASE: (USAGE,),
    VIEWS_IN_SCHEMA: (SELECT,),
}
PRIVILEGES: Final = tuple(dict.fromkeys(chain.from_iterable(ON.values())))
#: Number of parts of an object's full name, if it has several.
PARTS: Final[Mapping[str, int]] = {
    "SCHEMA": 2,
    TABLES_IN_SCHEMA: 2,
    VIEWS_IN_SCHEMA: 2,
    "ICEBERG TABLE": 3,
}


class GrantOutputs(NamedTuple):
    id: str


@properties
class GrantProps(Properties[GrantOutputs]):
    TYPE: ClassVar[str] = "snowflake_grant"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("privilege", "on", "name", "to_role", "to_user")

    privilege: str = prop(
        "The privilege. On a role, USAGE means membership.",
        default=USAGE,
        one_of=PRIVILEGES,
    )
    on: str = prop(
        "Type of the object. The last four are groups of objects; those in a schema include future ones.",
        one_of=tuple(ON),
    )
    name: str = prop("Full name of the object, as in SQL.")
    to_role: str = prop("The role that gets the privilege.", default="")
    to_user: str = prop("The user that gets the role, if `on` is ROLE.", default="")
    named_by: str = prop(
        "The key of the deployment file that names the grantee, for messages. Without it, the deployment "
        "created the grantee.",
        default="",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.privilege not in ON[self.on]:
            yield "privilege", f"{self.privilege} can't be granted on {self.on}; {', '.join(ON[self.on])} can"
        if len(self.names) != PARTS.get(self.on, 1):
            yield "name", f"{self.name!r} does not have {PARTS.get(self.on, 1)} parts, joined by dots"
        if bool(self.to_role) == bool(self.to_user):
            yield "to_role", "set either to_role or to_user"
        if self.to_user and self.on != ROLE:
            yield "to_user", f"only roles are granted to users; grant {self.on} to a role"

    @property
    def names(self) -> tuple[str, ...]:
        return sql.split(self.name)


class UserOutputs(NamedTuple):
    name: str
    secret: str


@properties
class UserProps(Properties[UserOutputs]):
    TYPE: ClassVar[str] = "snowflake_user"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("name",)

    secret: str = prop(
        "Name or ARN of the secret that gets the key pair. It must exist; its value is replaced."
    )
    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")
    role: str = prop("The user's default role.", default="")
    warehouse: str = prop("The user's default warehouse.", default="")
    namespace: str = prop("The user's default namespace: a database or `database.schema`.", default="")
    network_policy: str = prop(
        "A network policy of the user's own, which the deployer's role owns.", default=""
    )
    account: str = prop(
        "The account as the deployment file names it. If it changes, the secret is written again.", default=""
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)
        if self.namespace and len(sql.split(self.namespace)) not in (1, 2):
            yield "namespace", f"{self.namespace!r} is neither a database nor database.schema"


_URL: Final = re.compile(r"s3://[a-z0-9][a-z0-9-]{1,61}[a-z0-9]/([^\s'\"\\]*/)?")


ROLE_ARN: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]{1,512}")


def list_role_problems(role_arn: str) -> Iterator[tuple[str, str]]:
    if not ROLE_ARN.fullmatch(role_arn):
        yield "role_arn", f"{role_arn!r} is not the ARN of an IAM role"


class ExternalVolumeOutputs(NamedTuple):
    name: str
    iam_user_arn: str
    external_id: str


@properties
class ExternalVolumeProps(Properties[ExternalVolumeOutputs]):
    TYPE: ClassVar[str] = "snowflake_external_volume"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("base_url", "role_arn")

    base_url: str = prop("Location of the tables' data and metadata: s3://bucket/prefix/.")
    role_arn: str = prop("ARN of the customer's role, which need not exist yet.")

    def problems(self) -> Iterator[tuple[str, str]]:
        if not _URL.fullmatch(self.base_url):
            yield (
                "base_url",
                f"{self.base_url!r} is not s3://bucket/prefix/; Snowflake takes no bucket with dots in its "
                "name",
            )
        yield from list_role_problems(self.role_arn)


_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


class CatalogIntegrationOutputs(NamedTuple):
    name: str
    iam_user_arn: str
    external_id: str


@properties
class CatalogIntegrationProps(Properties[CatalogIntegrationOutputs]):
    TYPE: ClassVar[str] = "snowflake_catalog_integration"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("role_arn", "region", "account_id", "namespace")

    role_arn: str = prop("ARN of the customer's role, which need not exist yet.")
    region: str = prop("The region of the Glue catalog.")
    account_id: str = prop("The AWS account of the Glue catalog, twelve digits.")
    namespace: str = prop("The Glue database: the Kafka cluster's id, lkc-…, unless another one was chosen.")
    refresh_seconds: int = prop(
        "Seconds between two checks for new snapshots. Tableflow writes one every few minutes.", default=60
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if not _REGION.fullmatch(self.region):
            yield "region", f"{self.region!r} is not a region of AWS"
        if not re.fullmatch(r"[0-9]{12}", self.account_id):
            yield "account_id", f"{self.account_id!r} is not an AWS account id"
        if not 30 <= self.refresh_seconds <= 86400:
            yield "refresh_seconds", "must be 30 to 86400"
        yield from list_role_problems(self.role_arn)


class TrustOutputs(NamedTuple):
    volume: str
    integration: str


@properties
class TrustProps(Properties[TrustOutputs]):
    TYPE: ClassVar[str] = "snowflake_trust"

    volume: str = prop("The external volume's name.")
    integration: str = prop("The catalog integration's name.")
    namespace: str = prop(
        "The Glue database that the catalog must contain. Without it, this is not checked.", default=""
    )
    volume_principal: str = prop("The IAM user that the role trusts for the volume.", default="")
    volume_external_id: str = prop("The external id that the role requires for the volume.", default="")
    integration_principal: str = prop("The IAM user that the role trusts for the integration.", default="")
    integration_external_id: str = prop(
        "The external id that the role requires for the integration.", default=""
    )


class IcebergTableOutputs(NamedTuple):
    name: str
    full_name: str


@properties
class IcebergTableProps(Properties[IcebergTableOutputs]):
    TYPE: ClassVar[str] = "snowflake_iceberg_table"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("database", "schema", "name")

    database: str = prop("The database's name.")
    schema: str = prop("The schema's name.")
    name: str = prop(f"The table's name in Snowflake: {sql.CHOSEN}.")
    volume: str = prop("The external volume's name.")
    integration: str = prop("The catalog integration's name.")
    table: str = prop("The table's name in Glue, which is the topic's name.")
    namespace: str = prop("The Glue database, if it isn't the catalog integration's namespace.", default="")
    write_mode: str = prop("Tableflow's write mode of the table; UPSERT is refused.", default="APPEND")
    columns: list[str] = prop(
        "Columns that the table must have. If one is missing, an update creates the table again, which reads "
        "the newest columns from Glue.",
        default=list,
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)
        if reason := contract.snowflake_refuses(self.write_mode):
            yield "write_mode", reason

    @property
    def names(self) -> tuple[str, str, str]:
        return sql.to_exact_name(self.database), sql.to_exact_name(self.schema), self.name.upper()


@properties
class ViewProps(Properties[IcebergTableOutputs]):
    TYPE: ClassVar[str] = "snowflake_view"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("database", "schema", "name")

    database: str = prop("The database's name.")
    schema: str = prop("The schema's name.")
    name: str = prop(f"The view's name: {sql.CHOSEN}.")
    table: str = prop("Full name of the Iceberg table, as in SQL.")
    columns: list[str] = prop(
        "The table's columns that the view may show. Those that the table doesn't have are left out until a "
        "property of the view changes."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)
        if len(sql.split(self.table)) != PARTS["ICEBERG TABLE"]:
            yield "table", f"{self.table!r} does not have 3 parts, joined by dots"
        if not self.columns:
            yield "columns", "must have at least one"

    @property
    def names(self) -> tuple[str, str, str]:
        return sql.to_exact_name(self.database), sql.to_exact_name(self.schema), self.name.upper()


@properties
class LinkedDatabaseProps(Properties[NameOutputs]):
    TYPE: ClassVar[str] = "snowflake_linked_database"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("name",)

    volume: str = prop("The external volume's name.")
    integration: str = prop("The catalog integration's name.")
    namespaces: list[str] = prop("The Glue databases to show. Each becomes a schema.")
    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")
    sync_seconds: int = prop(
        "Seconds between two checks for new tables. Each check costs credits.", default=300
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.list_name_problems(self.name)
        if not self.namespaces:
            yield "namespaces", "must have at least one: without any, Snowflake would show all"
        if not 30 <= self.sync_seconds <= 86400:
            yield "sync_seconds", "must be 30 to 86400"
