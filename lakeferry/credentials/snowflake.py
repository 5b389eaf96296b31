"""`lakeferry secrets set snowflake`: verify the deployer's key pair by logging in, and store it; or generate
a new pair.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from config.deployments.snowflake_model import Snowflake as SnowflakeSettings
from lakeferry.credentials import prompt
from lakeferry.credentials import store as secret_store
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, find_program_name
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import Denied, LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.secrets import Fields
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import keypair, secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake, build_account_url
from lambdas.snowflake.keypair import KeyPair, UnusableKey
from lambdas.snowflake.secret_fields import PASSPHRASE, PRIVATE_KEY, Connection

_SECONDS: Final = 60.0
_WHO: Final = "SELECT CURRENT_USER() AS RESULT"
_DESC: Final = "DESC USER {name}"
#: The two properties of a user that hold a public key, each with the property in DESC USER that has the key's
#: fingerprint.
_SLOTS: Final = {"RSA_PUBLIC_KEY": "RSA_PUBLIC_KEY_FP", "RSA_PUBLIC_KEY_2": "RSA_PUBLIC_KEY_2_FP"}
_SET: Final = {
    "RSA_PUBLIC_KEY": "ALTER USER {name} SET RSA_PUBLIC_KEY={key}",
    "RSA_PUBLIC_KEY_2": "ALTER USER {name} SET RSA_PUBLIC_KEY_2={key}",
}
_EMPTY: Final = ("", "null")


@attrs.frozen
class Deployer:
    """The Snowflake user that Lakeferry deploys with."""

    ctx: DeploymentContext
    settings: SnowflakeSettings

    @property
    def name(self) -> str:
        return sql.to_exact_name(self.settings.user)

    def client(self, pair: KeyPair) -> Snowflake:
        deadline = Deadline(self.ctx.clock, self.ctx.clock.time() + _SECONDS)
        login = Login(self.settings.account, self.settings.user, sql.to_exact_name(self.settings.role))
        return Snowflake(
            Session(deadline, trust_environment=True),
            self.ctx.clock,
            login,
            pair,
            self.ctx.addresses.snowflake,
        )

    def fields(self, pair: KeyPair) -> Fields:
        host = (
            urlsplit(self.ctx.addresses.snowflake or build_account_url(self.settings.account)).hostname or ""
        )
        role = sql.to_exact_name(self.settings.role)
        warehouse = sql.to_exact_name(self.settings.deployer_warehouse)
        return secret_fields.build_fields(
            pair, Connection(self.settings.account, self.name, host, role, warehouse)
        )

    def statement(self, pair: KeyPair, slot: str) -> str:
        name = sql.identifier(self.name)
        key = sql.literal(pair.public)
        return sql.statement(_SET[slot], name=name, key=key).text + ";"


def store(output: Output, ctx: DeploymentContext) -> dict[str, Any]:
    """Read, verify and store a private key. Raises CommandFailed before it stores anything."""
    deployer = _open_deployer(ctx)
    pair = prompt.read_private_key(output)
    _ = ctx.account  # fails before the key is verified if AWS can't be used
    before = secret_store.read_value(ctx, deployer.settings.key_secret)
    verify(output, deployer, pair, before)
    others = dict(before.fields) if before else {}
    others.pop(PASSPHRASE, None)
    stored = secret_store.put_current(ctx, deployer.settings.key_secret, {**others, **deployer.fields(pair)})
    return _report(output, deployer, pair, stored)


def generate(output: Output, ctx: DeploymentContext) -> dict[str, Any]:
    """Generate a key pair and store it as a pending version. Raises CommandFailed.

    An admin has to set the public key in Snowflake. The next call then verifies the pair and makes it
    current.
    """
    deployer = _open_deployer(ctx)
    name = deployer.settings.key_secret
    _ = ctx.account  # fails before the key is verified if AWS can't be used
    pending = secret_store.read_value(ctx, name, secret_store.GENERATED)
    pair = _load_pair(pending)
    if pending is None or pair is None:
        return _stage_new_pair(output, deployer, keypair.make())
    try:
        verify(output, deployer, pair, secret_store.read_value(ctx, name))
    except CommandFailed as failure:
        if failure.code != "SECRETS-PUBLIC-KEY":
            raise
        raise CommandFailed(
            "SECRETS-WAITING", failure.message, failure.hint, failure.details, why=failure.why
        ) from None
    return _report(output, deployer, pair, secret_store.promote(ctx, name, pending))


def verify(output: Output, deployer: Deployer, pair: KeyPair, before: secret_store.Value | None) -> None:
    """Log in with the key.

    Raises CommandFailed if Snowflake rejects it, LakeferryError for other failures.
    """
    try:
        with output.step("Logging in to Snowflake"):
            deployer.client(pair).run(sql.Sql(_WHO))
    except Denied as denied:
        if denied.kind is not snowflake_errors.AUTH:
            raise
        raise _explain_unknown_key(deployer, pair, before, denied) from None


def _explain_unknown_key(
    deployer: Deployer, pair: KeyPair, before: secret_store.Value | None, denied: Denied
) -> CommandFailed:
    slot, current_works = _choose_free_slot(deployer, _load_pair(before))
    statement = deployer.statement(pair, slot)
    user = f"user {deployer.name} of account {deployer.settings.account}"
    if current_works:
        message = f"{user} doesn't have this key's public key"
        why = "The key that is stored now can log in, so the user and the account are right."
    else:
        message = f"Snowflake rejected the login of {user} with this key"
        why = (
            "The user doesn't have its public key, or does not exist; or the account or user is misspelt "
            "in the deployment file."
        )
    hint = f"Ask a Snowflake admin to run this, then run the command again: {statement}"
    details = {"sql": statement, "fingerprint": pair.fingerprint, "snowflake": denied.what}
    return CommandFailed("SECRETS-PUBLIC-KEY", message, hint, details, why=why)


def _choose_free_slot(deployer: Deployer, current: KeyPair | None) -> tuple[str, bool]:
    """Return the property for a new public key, one that doesn't hold the current key, and whether the
    current key can log in.
    """
    first, second = _SLOTS
    if current is None:
        return first, False
    try:
        client = deployer.client(current)
        client.run(sql.Sql(_WHO))
    except LakeferryError:
        return first, False
    try:
        rows = client.run(sql.statement(_DESC, name=sql.identifier(deployer.name)))
    except LakeferryError:
        return second, True
    prints = {row.get("property", ""): row.get("value", "") for row in rows}
    free = [slot for slot, name in _SLOTS.items() if prints.get(name, "") in _EMPTY]
    other = [slot for slot, name in _SLOTS.items() if prints.get(name, "") != current.fingerprint]
    return (free or other or [second])[0], True


def _stage_new_pair(output: Output, deployer: Deployer, pair: KeyPair) -> dict[str, Any]:
    name = deployer.settings.key_secret
    slot, _ = _choose_free_slot(deployer, _load_pair(secret_store.read_value(deployer.ctx, name)))
    arn = secret_store.stage_pending(deployer.ctx, name, deployer.fields(pair))
    statement = deployer.statement(pair, slot)
    output.print(
        f"Generated a key pair and stored it in {name}, {arn}; it is not current yet. Fingerprint: "
        f"{pair.fingerprint}"
    )
    output.print(f"Ask a Snowflake admin to run:\n\n{statement}\n")
    output.print(
        "If the user doesn't exist yet, use the script in docs/how-to/prepare-snowflake.md with the same "
        "public key."
    )
    command = f"{find_program_name()} secrets set snowflake --generate --stage {deployer.ctx.stage}"
    output.print(f"Next: {command}, which verifies the key pair and makes it current")
    public = {
        "fingerprint": pair.fingerprint,
        "user": deployer.name,
        "account": deployer.settings.account,
        "state": "waiting",
    }
    secret = {"secret": name, "arn": arn, "version": "", "changed": False}
    return {"stage": deployer.ctx.stage, "vendor": "snowflake", "key": public, **secret, "sql": statement}


def _report(
    output: Output, deployer: Deployer, pair: KeyPair, stored: secret_store.StoredSecret
) -> dict[str, Any]:
    role = sql.to_exact_name(deployer.settings.role)
    output.print(
        f"Key {pair.fingerprint}: user {deployer.name} of {deployer.settings.account}, in role {role}"
    )
    output.print(stored.describe())
    output.print(f"Next: {find_program_name()} doctor --stage {deployer.ctx.stage}")
    public = {
        "fingerprint": pair.fingerprint,
        "user": deployer.name,
        "account": deployer.settings.account,
        "state": "current",
    }
    return {"stage": deployer.ctx.stage, "vendor": "snowflake", "key": public, **stored.document(), "sql": ""}


def _load_pair(value: secret_store.Value | None) -> KeyPair | None:
    """Return the key pair of a secret, or None if there is none or it can't be read."""
    if value is None or PRIVATE_KEY not in value.fields:
        return None
    try:
        return keypair.load(value.fields[PRIVATE_KEY], value.fields.get(PASSPHRASE))
    except UnusableKey:
        return None


def _open_deployer(ctx: DeploymentContext) -> Deployer:
    settings = ctx.deployment.snowflake
    if settings is None:
        raise CommandFailed("NO-SNOWFLAKE", f"the deployment of stage {ctx.stage} has no [snowflake]")
    return Deployer(ctx, settings)
