"""Databases, schemas and catalog-linked databases. Writing to a catalog-linked database is not simulated."""

from __future__ import annotations

from typing import Any, Final

from simulators.snowflake import iceberg
from simulators.snowflake.errors import not_simulated, unsupported
from simulators.snowflake.model import (
    CatalogLink,
    Database,
    Domain,
    Integration,
    Name,
    Schema,
    Volume,
    to_sql_name,
)
from simulators.snowflake.objects.object_type import ObjectType
from simulators.snowflake.parser import Cursor, Options
from simulators.snowflake.results import Result, format_time
from simulators.snowflake.session import Session

_NOT_SIMULATED: Final = (
    "DATA_RETENTION_TIME_IN_DAYS MAX_DATA_EXTENSION_TIME_IN_DAYS EXTERNAL_VOLUME CATALOG "
    "REPLACE_INVALID_CHARACTERS DEFAULT_DDL_COLLATION LOG_LEVEL TRACE_LEVEL STORAGE_SERIALIZATION_POLICY "
    "CATALOG_SYNC OBJECT_VISIBILITY"
)
_LINK: Final = (
    "CATALOG ALLOWED_NAMESPACES ALLOWED_WRITE_OPERATIONS SYNC_INTERVAL_SECONDS NAMESPACE_MODE "
    "CATALOG_CASE_SENSITIVITY"
)
_LINK_NOT_SIMULATED: Final = "BLOCKED_NAMESPACES NAMESPACE_FLATTEN_DELIMITER"
_WRITES: Final = "NONE ALL"
_SYNC_SECONDS: Final = (30, 86_400)


class Schemas(ObjectType[Schema]):
    model = Schema
    words = "SCHEMA"
    title = "Schema"
    create_privilege = "CREATE SCHEMA"
    alter_privilege = "MODIFY"
    not_simulated = _NOT_SIMULATED
    alter_not_simulated = "RENAME SWAP"
    columns = (
        "created_on name is_default is_current database_name owner comment options retention_time "
        "owner_role_type classification_profile_database classification_profile_schema "
        "classification_profile object_visibility"
    )

    def read_clauses(self, cursor: Cursor) -> dict[str, Any]:
        if cursor.is_at("CLONE"):
            raise not_simulated("CREATE SCHEMA … CLONE")
        return {"managed_access": cursor.take("WITH", "MANAGED", "ACCESS")}

    def build(self, session: Session, name: Name, fields: dict[str, Any]) -> Schema:
        if session.account.find(Domain.DATABASE, name[:1]).link:
            raise unsupported("CREATE SCHEMA in a catalog-linked database whose writes are not allowed")
        return super().build(session, name, fields)

    def alter_otherwise(self, session: Session, cursor: Cursor, schema: Schema) -> bool:
        enable = cursor.take("ENABLE", "MANAGED", "ACCESS")
        if not enable and not cursor.take("DISABLE", "MANAGED", "ACCESS"):
            return False
        cursor.end()
        session.require("OWNERSHIP", schema)
        schema.managed_access = enable
        return True

    def build_row(self, session: Session, schema: Schema) -> dict[str, Any]:
        return {
            "is_default": "N",
            "is_current": "Y" if schema.name == (session.database, session.schema) else "N",
            "database_name": schema.name[0],
            "options": "MANAGED ACCESS" if schema.managed_access else "",
            "retention_time": "1",
        }


class Databases(ObjectType[Database]):
    model = Database
    words = "DATABASE"
    title = "Database"
    create_privilege = "CREATE DATABASE"
    alter_privilege = "MODIFY"
    create_only = "LINKED_CATALOG EXTERNAL_VOLUME"
    not_simulated = _NOT_SIMULATED
    alter_not_simulated = "RENAME SWAP"
    columns = (
        "created_on name is_default is_current origin owner comment options retention_time kind budget "
        "owner_role_type object_visibility"
    )

    def read_clauses(self, cursor: Cursor) -> dict[str, Any]:
        if cursor.is_at("CLONE") or cursor.is_at("FROM") or cursor.is_at("AS"):
            raise not_simulated(f"CREATE DATABASE … {cursor.read_word()}")
        return {}

    def read_create(self, session: Session, options: Options) -> dict[str, Any]:
        fields = self.read(session, options)
        if "LINKED_CATALOG" in options:
            fields["link"] = _read_link(options.read_nested("LINKED_CATALOG", _LINK, _LINK_NOT_SIMULATED))
            options.require("EXTERNAL_VOLUME")
            fields["volume"] = options.read_text("EXTERNAL_VOLUME")
        elif "EXTERNAL_VOLUME" in options:
            raise not_simulated("EXTERNAL_VOLUME of DATABASE")
        return fields

    def build(self, session: Session, name: Name, fields: dict[str, Any]) -> Database:
        if "link" in fields:
            catalog: Integration = session.resolve_text(Domain.INTEGRATION, fields["link"].pop("catalog"))
            volume: Volume = session.resolve_text(Domain.VOLUME, fields.pop("volume"))
            session.require("USAGE", catalog)
            session.require("USAGE", volume)
            fields["link"] = CatalogLink(catalog=catalog.name, volume=volume.name, **fields["link"])
        return super().build(session, name, fields)

    def act_on_creation(self, session: Session, new: Database) -> None:
        """Create the schema PUBLIC.

        A catalog-linked database gets its schemas from the catalog instead, in its first sync.
        """
        if new.link:
            iceberg.start_syncing(session.account, new, 0)
        else:
            session.account.add(Schema(name=(*new.name, "PUBLIC"), owner=session.role, created=new.created))

    def alter_otherwise(self, session: Session, cursor: Cursor, database: Database) -> bool:
        if not cursor.take("UPDATE", "LINKED_CATALOG"):
            return False
        if database.link is None:
            cursor.refuse()
        session.require("OWNERSHIP", database)
        _alter_link(cursor, database.link)
        return True

    def show(self, session: Session, cursor: Cursor) -> Result:
        cursor.take("IN", "ACCOUNT")
        return super().show(session, cursor)

    def build_row(self, session: Session, database: Database) -> dict[str, Any]:
        return {
            "is_default": "N",
            "is_current": "Y" if database.label == session.database else "N",
            "retention_time": "1",
            "kind": "CATALOG-LINKED DATABASE" if database.link else "STANDARD",
            "budget": None,
        }


def _read_link(link: Options) -> dict[str, Any]:
    link.require("CATALOG")
    if link.read_choice("ALLOWED_WRITE_OPERATIONS", _WRITES, "ALL") != "NONE":
        raise not_simulated(
            "a linked database that Snowflake may write to: set ALLOWED_WRITE_OPERATIONS = NONE"
        )
    mode = link.read_choice("NAMESPACE_MODE", "IGNORE_NESTED_NAMESPACE FLATTEN_NESTED_NAMESPACE")
    if mode == "FLATTEN_NESTED_NAMESPACE":
        raise not_simulated("NAMESPACE_MODE FLATTEN_NESTED_NAMESPACE")
    catalog = link.read_text("CATALOG")
    allowed = list(link.read_strings("ALLOWED_NAMESPACES"))
    seconds = link.read_integer("SYNC_INTERVAL_SECONDS", 30, *_SYNC_SECONDS)
    sensitivity = link.read_choice("CATALOG_CASE_SENSITIVITY", "CASE_SENSITIVE CASE_INSENSITIVE")
    insensitive = sensitivity != "CASE_SENSITIVE"
    return {"catalog": catalog, "allowed": allowed, "seconds": seconds, "insensitive": insensitive}


def _alter_link(cursor: Cursor, link: CatalogLink) -> None:
    """Run ALTER DATABASE … UPDATE LINKED_CATALOG. The cursor is after these words."""
    if cursor.take("ADD"):
        added_namespaces = _read_namespaces(cursor, "TO")
        link.allowed += [namespace for namespace in added_namespaces if namespace not in link.allowed]
    elif cursor.take("REMOVE"):
        removed_namespaces = _read_namespaces(cursor, "FROM")
        link.allowed = [namespace for namespace in link.allowed if namespace not in removed_namespaces]
    else:
        cursor.expect("SET")
        options = Options(
            "LINKED_CATALOG", cursor.read_options(), "SYNC_INTERVAL_SECONDS ALLOWED_WRITE_OPERATIONS"
        )
        cursor.end()
        if options.read_choice("ALLOWED_WRITE_OPERATIONS", _WRITES, "NONE") != "NONE":
            raise not_simulated("ALLOWED_WRITE_OPERATIONS ALL")
        link.seconds = options.read_integer("SYNC_INTERVAL_SECONDS", link.seconds, *_SYNC_SECONDS)


def _read_namespaces(cursor: Cursor, preposition: str) -> list[str]:
    cursor.expect_sign("(")
    namespaces = [cursor.string()]
    while cursor.take_sign(","):
        namespaces.append(cursor.string())
    cursor.expect_sign(")")
    cursor.expect(preposition, "ALLOWED_NAMESPACES")
    cursor.end()
    return namespaces


def describe_link_status(database: str, link: CatalogLink) -> dict[str, Any]:
    """Return the result of SYSTEM$CATALOG_LINK_STATUS."""
    failure = {
        "qualifiedEntityName": to_sql_name((database,)),
        "entityDomain": "DATABASE",
        "operation": "DISCOVER",
    }
    return {
        "failureDetails": [failure | {"errorMessage": failure_text} for failure_text in link.failures],
        "executionState": iceberg.RUNNING,
        "lastLinkAttemptStartTime": format_time(link.attempted) if link.attempted else None,
    }


def describe_link_configuration(link: CatalogLink) -> dict[str, Any]:
    """Return the result of SYSTEM$GET_CATALOG_LINKED_DATABASE_CONFIG."""
    return {
        "catalog": to_sql_name(link.catalog),
        "externalVolume": to_sql_name(link.volume),
        "allowedNamespaces": link.allowed,
        "blockedNamespaces": [],
        "allowedWriteOperations": "NONE",
        "syncIntervalSeconds": link.seconds,
        "namespaceMode": "IGNORE_NESTED_NAMESPACE",
        "catalogCaseSensitivity": "CASE_INSENSITIVE" if link.insensitive else "CASE_SENSITIVE",
    }
