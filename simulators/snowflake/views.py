"""Views. A secure one shows its definition to the role that owns it only."""

from __future__ import annotations

from typing import Any

from simulators.snowflake import readable, select
from simulators.snowflake.errors import exists, not_simulated, syntax
from simulators.snowflake.model import Domain, View, to_sql_name
from simulators.snowflake.objects.object_type import CreateOptions, ObjectType
from simulators.snowflake.parser import Cursor
from simulators.snowflake.results import Result, build_status, build_table
from simulators.snowflake.session import Session


class Views(ObjectType[View]):
    model = View
    words = "VIEW"
    title = "View"
    create_privilege = "CREATE VIEW"
    alter_not_simulated = "ADD DROP RENAME MODIFY ALTER CHANGE_TRACKING"
    columns = (
        "created_on name reserved database_name schema_name owner comment text is_secure is_materialized "
        "owner_role_type change_tracking"
    )

    def create_view(
        self, session: Session, cursor: Cursor, create_options: CreateOptions, *, secure: bool
    ) -> Result:
        """Run CREATE VIEW. With COPY GRANTS, a replaced view keeps the grants on it; without, it has only
        those of future grants (docs.snowflake.com, CREATE VIEW).
        """
        name = cursor.read_name()
        if cursor.is_at_sign("("):
            raise not_simulated("a list of columns in CREATE VIEW")
        keeps_grants = cursor.take("COPY", "GRANTS")
        comment = ""
        if cursor.take("COMMENT"):
            cursor.expect_sign("=")
            comment = cursor.string()
        keeps_grants = cursor.take("COPY", "GRANTS") or keeps_grants
        cursor.expect("AS")
        if keeps_grants and not create_options.or_replace:
            raise syntax("COPY GRANTS needs OR REPLACE")
        query = cursor.text[cursor.next.start :].rstrip().rstrip(";")
        name = session.qualify_name(self.domain, name)
        container = session.find_container(self.domain, name)
        session.require(self.create_privilege, container, primary=True)
        existing = session.account.find(self.domain, name)
        if session.account.find(Domain.ICEBERG_TABLE, name):
            raise exists(name)
        if existing is not None and create_options.if_not_exists:
            return build_status(f"{to_sql_name(name[-1:])} already exists, statement succeeded.")
        if existing is not None and not create_options.or_replace:
            raise exists(name)
        if existing is not None:
            session.require("OWNERSHIP", existing)
        within = Session(
            session.account,
            session.user,
            session.role,
            warehouse=session.warehouse,
            database=name[0],
            schema=name[1],
        )
        columns = select.list_view_columns(within, query)
        fields = {"text": cursor.text, "query": query, "columns": columns, "secure": secure}
        new = self.build(session, name, {**fields, "comment": comment})
        self._add(session, existing, new, keeps_grants=keeps_grants)
        return build_status(f"View {to_sql_name(name[-1:])} successfully created.")

    def _add(self, session: Session, existing: View | None, new: View, *, keeps_grants: bool) -> None:
        account = session.account
        kept_grants = [grant for grant in account.grants if existing and grant.on == existing.key]
        if existing is not None:
            account.remove(existing)
        account.add(new)
        if keeps_grants and existing is not None:
            account.grants = [grant for grant in account.grants if grant.on != new.key] + kept_grants

    def create(self, session: Session, cursor: Cursor, create_options: CreateOptions) -> Result:
        return self.create_view(session, cursor, create_options, secure=False)

    def alter_otherwise(self, session: Session, cursor: Cursor, view: View) -> bool:
        """Run SET SECURE and UNSET SECURE."""
        enable = cursor.take("SET", "SECURE")
        if not enable and not cursor.take("UNSET", "SECURE"):
            return False
        cursor.end()
        session.require("OWNERSHIP", view)
        view.secure = enable
        return True

    def build_row(self, session: Session, view: View) -> dict[str, Any]:
        return {
            "database_name": view.name[0],
            "schema_name": view.name[1],
            "text": view.text if readable.can_read_definition(session, view) else "",
            "is_secure": view.secure,
            "is_materialized": False,
            "change_tracking": "OFF",
        }

    def build_description(self, session: Session, view: View) -> Result:
        session.require_any(("SELECT", "REFERENCES", "OWNERSHIP"), view)
        names = "name type kind null? default primary~key unique~key check expression comment policy~name"
        rows = ((column.name, column.sql_type, "COLUMN", "Y", None, "N", "N") for column in view.columns)
        return build_table(names, ((*row, *[None] * 4) for row in rows))
