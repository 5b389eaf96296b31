"""What an account holds: things of a domain, each with a name, an owner and a comment."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, NamedTuple

import attrs

from simulators.snowflake.names import Name


class Domain(Enum):
    """The value is the object type in GRANT … ON; `shown` is what SHOW GRANTS calls it."""

    ACCOUNT = "ACCOUNT"
    WAREHOUSE = "WAREHOUSE"
    DATABASE = "DATABASE"
    SCHEMA = "SCHEMA"
    ROLE = "ROLE"
    USER = "USER"
    VOLUME = "EXTERNAL VOLUME"
    INTEGRATION = "INTEGRATION"
    ICEBERG_TABLE = "ICEBERG TABLE"

    @property
    def shown(self) -> str:
        return "VOLUME" if self is Domain.VOLUME else self.value.replace(" ", "_")

    @property
    def depth(self) -> int:
        """How many parts a full name has."""
        return {Domain.SCHEMA: 2, Domain.ICEBERG_TABLE: 3}.get(self, 1)


class Key(NamedTuple):
    """What grants hang on."""

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
        """The last part of its name."""
        return self.name[-1]


@attrs.define(eq=False, kw_only=True)
class AccountObject(SnowflakeObject):
    domain: ClassVar[Domain] = Domain.ACCOUNT


@attrs.define(eq=False, kw_only=True)
class Warehouse(SnowflakeObject):
    """`last_used` is None while it is suspended."""

    domain: ClassVar[Domain] = Domain.WAREHOUSE
    size: str = "X-Small"
    auto_suspend: int = 600
    auto_resume: bool = True
    last_used: float | None = None


@attrs.define(eq=False, kw_only=True)
class Database(SnowflakeObject):
    """`link` is there where its tables are those of a catalog."""

    domain: ClassVar[Domain] = Domain.DATABASE
    link: Any = None


@attrs.define(eq=False, kw_only=True)
class Schema(SnowflakeObject):
    domain: ClassVar[Domain] = Domain.SCHEMA
    managed_access: bool = False


@attrs.define(eq=False, kw_only=True)
class Role(SnowflakeObject):
    domain: ClassVar[Domain] = Domain.ROLE


@attrs.define
class KeySlot:
    """A public key as it was given, its fingerprint, and when it was set."""

    text: str
    fingerprint: str
    since: float


@attrs.define(eq=False, kw_only=True)
class User(SnowflakeObject):
    """`keys` has slot 1 and slot 2."""

    domain: ClassVar[Domain] = Domain.USER
    type: str = ""
    login_name: str = ""
    display_name: str = ""
    email: str = ""
    default_role: str = ""
    default_warehouse: str = ""
    default_namespace: str = ""
    secondary_roles: bool = True
    disabled: bool = False
    keys: dict[int, KeySlot] = attrs.Factory(dict)


@attrs.frozen
class Location:
    """A place of an external volume. Its id is Snowflake's where the user chose none."""

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
    """Its name in the catalog, and what Snowflake makes of its type."""

    name: str
    sql_type: str


@attrs.define(eq=False, kw_only=True)
class IcebergTable(SnowflakeObject):
    """`metadata` is where the snapshot that it shows was described; `fault` is why it stopped refreshing."""

    domain: ClassVar[Domain] = Domain.ICEBERG_TABLE
    volume: Name
    catalog: Name
    catalog_table: str
    namespace: str
    auto_refresh: bool = False
    metadata: str = ""
    refreshed: float = 0.0
    columns: tuple[TableColumn, ...] = ()
    fault: str = ""
    #: Counts how often it began to follow its catalog; only the last beginning counts.
    follows: int = 0
    #: In a linked database, names of columns are those of the catalog.
    linked: bool = False
    #: Of the snapshot that it shows; 0 where nobody wrote one, or the lake isn't there. Milliseconds since 1970.
    snapshot_id: int = 0
    snapshot_ms: int = 0
