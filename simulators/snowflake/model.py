"""The data model of an account: its objects and grants.

Times are in seconds since 1970 UTC, unless stated otherwise.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import ClassVar, Final, NamedTuple

import attrs

#: For example ("DB", "SCHEMA", "TABLE"). The case of each part is the stored one.
Name = tuple[str, ...]

_UNQUOTED: Final = re.compile(r"[A-Z_][A-Z0-9_$]*")


def to_sql_name(name: Name) -> str:
    """Return the name as SQL text, with quotes around the parts that need them."""
    return ".".join(_quote_if_needed(part) for part in name)


def _quote_if_needed(part: str) -> str:
    if _UNQUOTED.fullmatch(part):
        return part
    return '"' + part.replace('"', '""') + '"'


class Domain(Enum):
    """A type of object. The value is the type in GRANT … ON."""

    ACCOUNT = "ACCOUNT"
    WAREHOUSE = "WAREHOUSE"
    DATABASE = "DATABASE"
    SCHEMA = "SCHEMA"
    ROLE = "ROLE"
    USER = "USER"
    VOLUME = "EXTERNAL VOLUME"
    INTEGRATION = "INTEGRATION"
    ICEBERG_TABLE = "ICEBERG TABLE"
    VIEW = "VIEW"

    @property
    def label(self) -> str:
        """Return the name in the results of SHOW GRANTS."""
        return "VOLUME" if self is Domain.VOLUME else self.value.replace(" ", "_")

    @property
    def depth(self) -> int:
        """Return the number of parts in a fully qualified name."""
        return {Domain.SCHEMA: 2, Domain.ICEBERG_TABLE: 3, Domain.VIEW: 3}.get(self, 1)


class Key(NamedTuple):
    """Identifies an object; grants refer to it."""

    domain: Domain
    name: Name


@attrs.define(eq=False, kw_only=True)
class SnowflakeObject:
    domain: ClassVar[Domain]
    name: Name
    owner: str
    created: float
    comment: str = ""

    @property
    def key(self) -> Key:
        return Key(self.domain, self.name)

    @property
    def label(self) -> str:
        """Return the last part of its name."""
        return self.name[-1]


@attrs.define(eq=False, kw_only=True)
class AccountObject(SnowflakeObject):
    """The account itself, on which global privileges such as CREATE DATABASE are granted."""

    domain: ClassVar[Domain] = Domain.ACCOUNT


@attrs.define(eq=False, kw_only=True)
class Warehouse(SnowflakeObject):
    """`auto_suspend` is in seconds. `last_used` is None if it was created suspended or suspended by ALTER, or
    if it was altered while auto-suspend had suspended it."""

    domain: ClassVar[Domain] = Domain.WAREHOUSE
    size: str = "X-Small"
    auto_suspend: int = 600
    auto_resume: bool = True
    last_used: float | None = None

    def is_running(self, now: float) -> bool:
        """Return whether it runs: it suspends itself `auto_suspend` seconds after the last query, or never if
        that is 0.
        """
        if self.last_used is None:
            return False
        return self.auto_suspend == 0 or now < self.last_used + self.auto_suspend


@attrs.define
class CatalogLink:
    """The link of a database to a catalog. If `allowed` is empty, all namespaces are. `seconds` is the sync
    interval.

    `insensitive` is whether the case of names is ignored. `attempted` is the time of the last sync, 0 before
    the first.
    """

    catalog: Name
    volume: Name
    allowed: list[str]
    seconds: int
    insensitive: bool = True
    attempted: float = 0.0
    failures: list[str] = attrs.Factory(list)


@attrs.define(eq=False, kw_only=True)
class Database(SnowflakeObject):
    """If it has a `link`, it is a catalog-linked database, whose schemas and tables are those of the
    catalog.
    """

    domain: ClassVar[Domain] = Domain.DATABASE
    link: CatalogLink | None = None


@attrs.define(eq=False, kw_only=True)
class Schema(SnowflakeObject):
    domain: ClassVar[Domain] = Domain.SCHEMA
    managed_access: bool = False


@attrs.define(eq=False, kw_only=True)
class Role(SnowflakeObject):
    domain: ClassVar[Domain] = Domain.ROLE


@attrs.define
class KeySlot:
    """A public key as SQL set it, its fingerprint, and the time at which it was set."""

    text: str
    fingerprint: str
    since: float


@attrs.define(eq=False, kw_only=True)
class User(SnowflakeObject):
    """The keys of `keys` are the slots: 1 for RSA_PUBLIC_KEY, 2 for RSA_PUBLIC_KEY_2."""

    domain: ClassVar[Domain] = Domain.USER
    type: str = ""
    login_name: str = ""
    display_name: str = ""
    email: str = ""
    default_role: str = ""
    default_warehouse: str = ""
    default_namespace: str = ""
    network_policy: str = ""
    secondary_roles: bool = True
    disabled: bool = False
    keys: dict[int, KeySlot] = attrs.Factory(dict)


@attrs.frozen
class Location:
    """A storage location of an external volume. Its external id is generated if the statement gives none."""

    label: str
    base_url: str
    role_arn: str
    external_id: str
    encryption: str = "NONE"
    kms_key_id: str = ""

    @property
    def bucket(self) -> str:
        return self.base_url.removeprefix("s3://").partition("/")[0]

    @property
    def prefix(self) -> str:
        return self.base_url.removeprefix("s3://").partition("/")[2]


@attrs.define(eq=False, kw_only=True)
class Volume(SnowflakeObject):
    """Only the first location is active."""

    domain: ClassVar[Domain] = Domain.VOLUME
    locations: list[Location]
    allow_writes: bool = True


@attrs.define(eq=False, kw_only=True)
class Integration(SnowflakeObject):
    """A catalog integration with Glue's Iceberg REST endpoint."""

    domain: ClassVar[Domain] = Domain.INTEGRATION
    namespace: str
    catalog_uri: str
    catalog_name: str
    role_arn: str
    external_id: str
    signing_region: str
    enabled: bool = True
    refresh_seconds: int = 30


@attrs.frozen
class TableColumn:
    """`name` is the name in the catalog, `sql_type` the Snowflake type for the column's Iceberg type."""

    name: str
    sql_type: str


@attrs.define(eq=False, kw_only=True)
class IcebergTable(SnowflakeObject):
    """`metadata` is the location of the metadata file that it was last refreshed to, `fault` why automatic
    refresh failed.
    """

    domain: ClassVar[Domain] = Domain.ICEBERG_TABLE
    volume: Name
    catalog: Name
    catalog_table: str
    namespace: str
    auto_refresh: bool = False
    metadata: str = ""
    columns: tuple[TableColumn, ...] = ()
    fault: str = ""
    #: How often automatic refresh was started. Scheduled refreshes of an earlier start do nothing.
    refresh_series: int = 0
    #: Whether it is in a catalog-linked database, where column names keep the case that they have in the
    #: catalog.
    linked: bool = False
    #: The current snapshot, and its time in milliseconds since 1970 UTC; 0 without a snapshot or a lake.
    snapshot_id: int = 0
    snapshot_ms: int = 0


@attrs.define(eq=False, kw_only=True)
class View(SnowflakeObject):
    """`text` is the statement that created it, `query` the SELECT in it, which runs with the owner's rights.

    `columns` are those that the query had when the view was created.
    """

    domain: ClassVar[Domain] = Domain.VIEW
    text: str
    query: str
    columns: tuple[TableColumn, ...] = ()
    secure: bool = False


@attrs.frozen
class Grant:
    """A privilege on an object. `to` and `by` are roles; `option` is WITH GRANT OPTION."""

    privilege: str
    on: Key
    to: str
    option: bool
    by: str
    created: float


@attrs.frozen
class FutureGrant:
    """A grant on each object of `domain` that will be created in `container`."""

    privilege: str
    domain: Domain
    container: Key
    to: str
    option: bool
    created: float


@attrs.frozen
class Membership:
    """The grant of `role` to a role or a user."""

    role: str
    to: Key
    by: str
    created: float
