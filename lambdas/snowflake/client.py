"""Snowflake's SQL API: one statement per call, authenticated with a key pair.

Each statement is sent with its role and warehouse, because the API keeps no session. A statement whose answer
was lost is sent again with the same request id, so that it runs only once.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlsplit

import attrs

from lambdas.shared import errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import Denied, LakeferryError, NotFound, OtherTenant, Refused, Transient
from lambdas.shared.http import Response, Session, Timeouts, require_safe
from lambdas.shared.redaction import Secret
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import sql
from lambdas.snowflake.errors import TRUNCATED_CODE, describe, read_error, read_field
from lambdas.snowflake.keypair import KeyPair
from lambdas.snowflake.sql import Sql

VENDOR_DOMAIN: Final = ".snowflakecomputing.com"
_WORDS: Final = r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?"
_ACCOUNT: Final = re.compile(rf"{_WORDS}(\.{_WORDS})*")
#: Parts of an account's name that belong to the location although they have no hyphen.
_LOCATIONS: Final = frozenset({"aws", "azure", "gcp", "privatelink"})


def require_account(account: str) -> str:
    """Return `account`. Raises LakeferryError for text that could make the URL point to another host."""
    if _ACCOUNT.fullmatch(account):
        return account
    raise LakeferryError(errors.ADDRESS, f"{account!r} is not the name of a Snowflake account")


def to_account_claim(account: str) -> str:
    """Return the account as JWTs name it: in upper case, without region, cloud and dots.

    A part after a dot is a region if it has a hyphen (`xy12345.us-east-2.aws`), because an account's own name
    can't have one. Otherwise the dot separates organization and account (`myorg.acct`); JWTs have a hyphen
    instead.
    """
    first, *rest = require_account(account).split(".")
    if "global" in rest:
        return first.partition("-")[0].upper()
    parts = [first]
    for part in rest:
        if "-" in part or part.lower() in _LOCATIONS:
            break
        parts.append(part)
    return "-".join(parts).upper()


def build_account_url(account: str) -> str:
    """Return the account's URL. Host names have hyphens instead of underscores."""
    first, *parts = require_account(account).lower().split(".")
    if parts and "-" not in parts[0] and parts[0] not in _LOCATIONS | {"global"}:
        first = f"{first}-{parts[0]}"
        parts = parts[1:]
    name = ".".join([first, *parts]).replace("_", "-")
    return f"https://{name}{VENDOR_DOMAIN}"


#: Seconds for which a token is valid, and after which a new one is created: some logins refuse tokens older
#: than a minute.
TOKEN_SECONDS: Final = 600
_TOKEN_AGE: Final = 30.0
#: Seconds that Snowflake may work on one statement.
STATEMENT_SECONDS: Final = 600
#: Snowflake holds a statement for up to 45 s before it answers 202 (docs.snowflake.com, "Submitting requests
#: to execute SQL statements"). A client that waits less sends long statements several times.
TIMEOUTS: Final = Timeouts(read=50.0)
_FIRST_POLL: Final = 0.5
_LONGEST_POLL: Final = 5.0
_STATEMENTS: Final = "/api/v2/statements"
#: Smaller differences between the clocks are within the precision of the Date header.
_SMALLEST_SKEW: Final = 1.0

#: Two accounts of one organization may be in one region, and two accounts in different regions may have the
#: same locator.
_TENANT: Final = "SELECT CURRENT_ACCOUNT() AS LOCATOR, CURRENT_REGION() AS REGION"
_GRANTS: Final = "SHOW GRANTS TO ROLE {role}"

Row = Mapping[str, str]


@attrs.frozen
class Login:
    """The user, and the role and warehouse of every statement. `warehouse` may be "". `namespace` is database
    and schema of names without them; if it is empty, they are those of the user.
    """

    account: str
    user: str
    role: str
    warehouse: str = ""
    namespace: tuple[str, ...] = ()


class Snowflake:
    """One account, used by one user in one role."""

    #: A create fails if the name is taken, whoever owns the object.
    NAMES_ARE_UNIQUE: Final = True

    def __init__(self, session: Session, clock: Clock, login: Login, key: KeyPair, url: str = "") -> None:
        self.url = (url or build_account_url(login.account)).rstrip("/")
        require_safe(self.url)
        self.login = login
        self._session = session
        self._clock = clock
        self._key = key
        self._skew = 0.0
        self._corrected = False
        self._token: tuple[float, Secret] | None = None

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def logged_in(self, user: str, key: KeyPair, role: str) -> Snowflake:
        """Return a client for another user of the same account, without a warehouse."""
        other = Snowflake(self._session, self._clock, Login(self.login.account, user, role), key, self.url)
        other._skew = self._skew
        return other

    @cached_property
    def tenant(self) -> str:
        """Return the account's locator and region. Its name and its organization's can be changed."""
        row = next(iter(self.run(sql.statement(_TENANT))), {})
        if row.get("locator") and row.get("region"):
            return f"{row['locator']}.{row['region']}"
        raise Transient(snowflake_errors.UNEXPECTED, "Snowflake doesn't say which account this is")

    @property
    def creator(self) -> str:
        """Return the role: it owns what it creates, and an owner sees its objects."""
        return self.login.role

    @property
    def principal(self) -> str:
        """Return user and role: the role decides what the login sees."""
        return f"{self.login.user} in role {self.login.role}"

    def wrong_tenant(self, tenant: str) -> OtherTenant:
        """Return the error for a login that is not one of `tenant`, where the object is."""
        what = f"it is in account {tenant}, and {self.login.account} is account {self.tenant}"
        return OtherTenant(snowflake_errors.OTHER_ACCOUNT, what)

    def unseen(self, why: str) -> Denied:
        return Denied(snowflake_errors.UNSEEN, f"whether it still exists can't be told: {why}", patience=0.0)

    def require_sight(self, spec: Any) -> None:
        """Return if the role sees all objects of the account. Raises Denied.

        SHOW lists only what the role has a privilege on; MANAGE GRANTS implies that it sees every object
        (docs.snowflake.com, SHOW <objects>).
        """
        if not self._manages_grants:
            raise self.unseen(f"role {self.login.role} sees only what it owns or has privileges on")

    @cached_property
    def _manages_grants(self) -> bool:
        """Return whether the role, or a role that is granted to it, has MANAGE GRANTS on the account."""
        seen: set[str] = set()
        roles = [self.login.role]
        while roles:
            role = roles.pop()
            if role in seen:
                continue
            seen.add(role)
            try:
                rows = self.run(sql.statement(_GRANTS, role=sql.identifier(role)))
            except (NotFound, Denied):
                continue  # what can't be read proves nothing
            if any(
                row.get("privilege") == "MANAGE GRANTS" and row.get("granted_on") == "ACCOUNT" for row in rows
            ):
                return True
            granted = [
                row for row in rows if row.get("granted_on") == "ROLE" and row.get("privilege") == "USAGE"
            ]
            roles += [sql.to_exact_name(row.get("name", "")) for row in granted]
        return False

    def run(self, statement: Sql) -> list[Row]:
        """Run a statement.

        Return its rows by lower-case column name, with "" for NULL. Raises LakeferryError.
        """
        # Messages show the beginning, which has the verb, the object type and the name.
        label = statement.text
        if len(label) > 80:
            label = label[:79] + "…"
        body = {
            "statement": statement.text,
            "timeout": STATEMENT_SECONDS,
            "role": self.login.role,
            "parameters": {"MULTI_STATEMENT_COUNT": "1"},
        }
        if self.login.warehouse:
            body["warehouse"] = self.login.warehouse
        body |= dict(zip(("database", "schema"), self.login.namespace, strict=False))
        params = {"requestId": str(uuid.uuid4()), "async": "false", "nullable": "true"}
        answer = self._call("POST", _STATEMENTS, label, params, body)
        return self._read_rows(self._await_end(answer, label), label)

    def value(self, statement: Sql) -> str:
        """Return the first value that a statement returns; "" if there is none."""
        return next((value for row in self.run(statement) for value in row.values()), "")

    def document(self, statement: Sql) -> Any:
        """Return the first value as parsed JSON; None if it isn't JSON."""
        try:
            return json.loads(self.value(statement))
        except ValueError:
            return None

    def _await_end(self, answer: Response, label: str) -> Response:
        """Poll until the statement has ended.

        Raises OutOfTime if the invocation ends first; the statement then continues.
        """
        if answer.status != 202:
            return answer
        route = _route(answer, label)
        wait = _FIRST_POLL
        while answer.status == 202:
            self._clock.sleep(wait)
            wait = min(_LONGEST_POLL, wait * 2)
            answer = self._call("GET", route, label)
        return answer

    def _read_rows(self, answer: Response, label: str) -> list[Row]:
        """Return all rows.

        Raises Transient for an incomplete answer: missing rows would look like missing objects.
        """
        if read_field(answer.body, "code") == TRUNCATED_CODE:
            raise Refused(snowflake_errors.TRUNCATED, describe(answer, label))
        meta = answer.body.get("resultSetMetaData") if isinstance(answer.body, dict) else None
        names = [read_field(column, "name").lower() for column in _read_items(meta, "rowType")]
        rows = list(_name_columns(names, _read_items(answer.body, "data")))
        for number in range(1, len(_read_items(meta, "partitionInfo"))):
            part = self._call("GET", _route(answer, label), label, {"partition": str(number)})
            rows += _name_columns(names, _read_items(part.body, "data"))
        if not names or read_field(meta, "numRows") != str(len(rows)):
            raise Transient(
                snowflake_errors.UNEXPECTED, f"{describe(answer, label)}: an answer without all of its rows"
            )
        return rows

    def _call(
        self, method: str, route: str, label: str, params: Mapping[str, str] | None = None, body: Any = None
    ) -> Response:
        once = dict(params or {})
        again = {"retry": "true"} if method == "POST" else {}
        answer = self._send(method, route, once, again, body)
        if answer.status == 401 and self._correct_skew(answer):
            answer = self._send(method, route, {**once, **again}, again, body)
        if answer.status in (200, 202):
            return answer
        skew = (
            f"; Snowflake's clock is {self._skew:+.0f} s from the function's"
            if abs(self._skew) >= _SMALLEST_SKEW
            else ""
        )
        raise read_error(answer, label, self._clock, skew)

    def _send(
        self, method: str, route: str, params: Mapping[str, str], again: Mapping[str, str], body: Any
    ) -> Response:
        headers = {
            "Authorization": f"Bearer {self._renew_token().reveal()}",
            "X-Snowflake-Authorization-Token-Type": "KEYPAIR_JWT",
        }
        return self._session.call(
            method,
            self.url + route,
            headers=headers,
            params=params,
            body=body,
            repeatable=True,
            retry_params=again,
            timeouts=TIMEOUTS,
        )

    def _renew_token(self) -> Secret:
        now = self._clock.time()
        if self._token is None or abs(now - self._token[0]) > _TOKEN_AGE:
            login = self.login
            claims = to_account_claim(login.account), login.user.upper()
            self._token = now, self._key.token(*claims, now=now + self._skew, seconds=TOKEN_SECONDS)
        return self._token[1]

    def _correct_skew(self, refused: Response) -> bool:
        """Adjust tokens once to the difference between the clocks. Return whether this changed anything."""
        try:
            theirs = parsedate_to_datetime(refused.headers.get("Date", "")).timestamp()
        except ValueError:
            return False
        skew = theirs - self._clock.time()
        if self._corrected or abs(skew - self._skew) < _SMALLEST_SKEW:
            return False
        self._skew = skew
        self._corrected = True
        self._token = None
        return True


def _route(answer: Response, label: str) -> str:
    """Return the route of a statement's status. Only the handle is taken from the answer, not its URL."""
    handle = read_field(answer.body, "statementHandle")
    if not handle or handle in (".", ".."):
        raise Transient(snowflake_errors.UNEXPECTED, f"{label}: an answer without a statement handle")
    return f"{_STATEMENTS}/{quote(handle, safe='')}"


def _read_items(body: Any, name: str) -> list[Any]:
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, list) else []


def _name_columns(names: list[str], data: list[Any]) -> Iterator[Row]:
    for values in data:
        if isinstance(values, list):
            yield {
                name: "" if value is None else str(value) for name, value in zip(names, values, strict=False)
            }
