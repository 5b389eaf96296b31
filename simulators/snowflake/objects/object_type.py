"""CREATE, ALTER, DROP, SHOW and DESCRIBE for one object type.

A subclass of ObjectType declares the properties, privileges and columns of a type, and overrides methods
where the type differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import attrs

from simulators.snowflake.errors import SqlError, exists, not_simulated
from simulators.snowflake.model import Domain, Name, SnowflakeObject, to_sql_name
from simulators.snowflake.parser import Cursor, Options, build_unknown_property_error, compile_like_pattern
from simulators.snowflake.results import Result, build_status, build_table_of_records
from simulators.snowflake.session import Session

T = TypeVar("T", bound=SnowflakeObject)


class CreateOptions(NamedTuple):
    """The options of CREATE [OR REPLACE] … [IF NOT EXISTS]."""

    or_replace: bool
    if_not_exists: bool


class Property(NamedTuple):
    """A property that CREATE and SET accept: the attribute that stores it, and the function that reads its
    value.
    """

    attribute: str
    read: Callable[[Options, str], Any]


Properties = Mapping[str, Property]

COMMENT: Final = Property("comment", Options.read_string)


def build_boolean_property(attribute: str) -> Property:
    return Property(attribute, Options.read_boolean)


def build_integer_property(attribute: str, low: int, high: int) -> Property:
    return Property(attribute, lambda options, name: options.read_integer(name, low, low, high))


class ObjectType(Generic[T]):
    """The statements for objects of one type. A statement that raises SqlError has changed nothing."""

    #: The class of the objects, the name of the type in SQL, and its name in the status message of CREATE.
    model: type[T]
    words: ClassVar[str]
    title: ClassVar[str]
    create_privilege: ClassVar[str]
    #: The privilege that SET and UNSET need.
    alter_privilege: ClassVar[str] = "OWNERSHIP"
    properties: ClassVar[Properties] = {"COMMENT": COMMENT}
    #: Further properties that only CREATE accepts.
    create_only: ClassVar[str] = ""
    #: Snowflake's properties that are not simulated, and those that are not simulated in SET only.
    not_simulated: ClassVar[str] = ""
    set_not_simulated: ClassVar[str] = ""
    #: The properties that UNSET accepts.
    unset: ClassVar[str] = "COMMENT"
    #: The first words of Snowflake's forms of ALTER that are not simulated.
    alter_not_simulated: ClassVar[str] = ""
    renamable: ClassVar[bool] = False
    #: Columns of SHOW.
    columns: ClassVar[str]

    @property
    def domain(self) -> Domain:
        return self.model.domain

    @property
    def plural(self) -> str:
        return f"{self.words}S"

    # --- CREATE

    def create(self, session: Session, cursor: Cursor, create_options: CreateOptions) -> Result:
        name = cursor.read_name()
        fields = self.read_clauses(cursor)
        options = Options(
            self.words,
            cursor.read_options(),
            f"{' '.join(self.properties)} {self.create_only}",
            self.not_simulated,
        )
        cursor.end()
        fields |= self.read_create(session, options)
        name = session.qualify_name(self.domain, name)
        session.require(self.create_privilege, session.find_container(self.domain, name), primary=True)
        existing = session.account.find(self.domain, name)
        if existing is not None and create_options.if_not_exists:
            return build_status(f"{to_sql_name(name[-1:])} already exists, statement succeeded.")
        if existing is not None and not create_options.or_replace:
            raise exists(name)
        if existing is not None:
            session.require("OWNERSHIP", existing)
            self.require_unused(session, existing)
        new = self.build(session, name, fields)
        if existing is not None:
            session.account.remove(existing)
        session.account.add(new)
        self.act_on_creation(session, new)
        return build_status(f"{self.title} {to_sql_name(name[-1:])} successfully created.")

    def read_clauses(self, cursor: Cursor) -> dict[str, Any]:
        """Read the clauses between the name and the properties, as attributes.

        Raises SqlError for what isn't simulated.
        """
        return {}

    def read_create(self, session: Session, options: Options) -> dict[str, Any]:
        """Return the attributes for the properties of CREATE.

        Raises SqlError for invalid or missing values.
        """
        return self.read(session, options)

    def read(self, session: Session, options: Options) -> dict[str, Any]:
        """Return the attributes for the properties that CREATE and SET accept.

        Raises SqlError for invalid values.
        """
        return {
            prop.attribute: prop.read(options, name)
            for name, prop in self.properties.items()
            if name in options
        }

    def build(self, session: Session, name: Name, fields: dict[str, Any]) -> T:
        """Return a new object. Raises SqlError if it refers to an object that the session may not use."""
        return self.model(name=name, owner=session.role, created=session.account.clock.now(), **fields)

    def act_on_creation(self, session: Session, new: T) -> None:
        """Act on the creation of an object."""

    # --- ALTER

    def alter(self, session: Session, cursor: Cursor) -> Result:
        if_exists = cursor.take("IF", "EXISTS")
        object_ = self._find_existing(session, cursor.read_name(), if_exists=if_exists)
        if object_ is None or self.alter_otherwise(session, cursor, object_):
            return build_status()
        for word in self.alter_not_simulated.split():
            if cursor.is_at(word):
                raise not_simulated(f"ALTER {self.words} … {word}")
        if self.renamable and cursor.take("RENAME", "TO"):
            self._rename(session, cursor, object_)
        elif self.unset and cursor.take("UNSET"):
            self._unset(session, cursor, object_)
        else:
            cursor.expect("SET")
            self._set(session, cursor, object_)
        return build_status()

    def alter_otherwise(self, session: Session, cursor: Cursor, object_: T) -> bool:
        """Run a form of ALTER that only this type has. Return False if the statement isn't one."""
        return False

    def require_alter(self, session: Session, object_: T, properties: Sequence[str]) -> None:
        session.require(self.alter_privilege, object_)

    def apply(self, session: Session, object_: T, fields: dict[str, Any]) -> None:
        for attribute, value in fields.items():
            setattr(object_, attribute, value)

    def restore(self, object_: T, name: str) -> None:
        """Set a property to its default."""
        attribute = self.properties[name].attribute
        setattr(object_, attribute, attrs.fields_dict(self.model)[attribute].default)

    def _set(self, session: Session, cursor: Cursor, object_: T) -> None:
        if cursor.is_at("TAG"):
            raise not_simulated("tags")
        values = cursor.read_options()
        cursor.end()
        if not values:
            cursor.refuse()
        not_simulated_names = f"{self.not_simulated} {self.set_not_simulated}"
        options = Options(self.words, values, " ".join(self.properties), not_simulated_names)
        fields = self.read(session, options)
        self.require_alter(session, object_, list(options))
        self.apply(session, object_, fields)

    def _unset(self, session: Session, cursor: Cursor, object_: T) -> None:
        names = [cursor.read_word()]
        while cursor.take_sign(","):
            names.append(cursor.read_word())
        cursor.end()
        for name in names:
            if name not in self.unset.split():
                raise build_unknown_property_error(name, self.words, self.not_simulated)
        self.require_alter(session, object_, names)
        for name in names:
            self.restore(object_, name)

    def _rename(self, session: Session, cursor: Cursor, object_: T) -> None:
        name = session.qualify_name(self.domain, cursor.read_name())
        cursor.end()
        session.require("OWNERSHIP", object_)
        if session.account.find(self.domain, name) is not None:
            raise exists(name)
        session.account.rename(object_, name)

    # --- DROP

    def drop(self, session: Session, cursor: Cursor) -> Result:
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.read_name()
        _ = cursor.take("RESTRICT") or cursor.take("CASCADE")
        cursor.end()
        object_ = self._find_existing(session, name, if_exists=if_exists)
        if object_ is None:
            return build_status(
                f"Drop statement executed successfully ({to_sql_name(name[-1:])} already dropped)."
            )
        session.require("OWNERSHIP", object_)
        self.require_unused(session, object_)
        self.prepare_drop(session, object_)
        session.account.remove(object_)
        return build_status(f"{to_sql_name(object_.name[-1:])} successfully dropped.")

    def require_unused(self, session: Session, existing: T) -> None:
        """Raise SqlError if the object can be neither dropped nor replaced."""

    def prepare_drop(self, session: Session, object_: T) -> None:
        """Act before an object is dropped. Raises SqlError if it can't be dropped."""

    # --- SHOW and DESCRIBE

    def show(self, session: Session, cursor: Cursor) -> Result:
        rows = (self._build_full_row(session, object_) for object_ in self._list_objects(session, cursor))
        return build_table_of_records(self.columns, rows)

    def _build_full_row(self, session: Session, object_: T) -> dict[str, Any]:
        common = {
            "created_on": object_.created,
            "name": object_.label,
            "owner": object_.owner,
            "comment": object_.comment,
            "owner_role_type": "ROLE" if object_.owner else "",
        }
        return common | self.build_row(session, object_)

    def build_row(self, session: Session, object_: T) -> dict[str, Any]:
        """Return the values of a row of SHOW, except those of the columns that all types have."""
        return {}

    def describe(self, session: Session, cursor: Cursor) -> Result:
        name = cursor.read_name()
        cursor.end()
        object_: T = session.resolve(self.domain, name)
        return self.build_description(session, object_)

    def build_description(self, session: Session, object_: T) -> Result:
        raise not_simulated(f"DESCRIBE {self.words}")

    def _find_existing(self, session: Session, name: Name, *, if_exists: bool) -> T | None:
        """Return the object; None if it doesn't exist and `if_exists` is set. Raises SqlError."""
        try:
            existing: T = session.resolve(self.domain, name)
        except SqlError as error:
            if if_exists and error.code == "002003":
                return None
            raise
        return existing

    def _list_objects(self, session: Session, cursor: Cursor) -> list[T]:
        """Read the filters of SHOW, and return the matching objects that the session may see, sorted by
        name.
        """
        like = cursor.string() if cursor.take("LIKE") else "%"
        pattern = compile_like_pattern(like)
        container = _read_scope(session, cursor) if self.domain.depth > 1 else ()
        prefix = cursor.string() if cursor.take("STARTS", "WITH") else ""
        limit = cursor.read_number() if cursor.take("LIMIT") else None
        if limit is not None and cursor.is_at("FROM"):
            raise not_simulated("SHOW … LIMIT … FROM")
        cursor.end()
        objects = [
            object_
            for object_ in session.account.all(self.model)
            if pattern.fullmatch(object_.label)
            and object_.name[: len(container)] == container
            and object_.label.startswith(prefix)
            and session.can_see(object_)
        ]
        return sorted(objects, key=lambda object_: object_.name)[:limit]


def _read_scope(session: Session, cursor: Cursor) -> Name:
    """Read IN, and return the name of its database or schema, by default the session's; () for the whole
    account.
    """
    if not cursor.take("IN"):
        if session.database and session.schema:
            return session.database, session.schema
        return (session.database,) if session.database else ()
    if cursor.take("ACCOUNT"):
        return ()
    domain = None
    if cursor.take("DATABASE"):
        domain = Domain.DATABASE
    elif cursor.take("SCHEMA"):
        domain = Domain.SCHEMA
    name = cursor.read_name()
    if domain is None:
        domain = Domain.SCHEMA if len(name) > 1 else Domain.DATABASE
    container: SnowflakeObject = session.resolve(domain, name)
    return container.name
