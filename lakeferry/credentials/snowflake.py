"""`lakeferry secrets set snowflake`: the deployer's key pair, proved by a login; or a new pair, for an admin to set."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from deployments.model import Snowflake as Wanted
from lakeferry.credentials import prompt
from lakeferry.credentials import store as secret_store
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, program_name
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import Denied, LakeferryError
from lambdas.shared.http import Session
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import keypair, secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake, account_url
from lambdas.snowflake.keypair import KeyPair, UnusableKey
from lambdas.snowflake.secret_fields import PASSPHRASE, PRIVATE_KEY, Connection

_SECONDS: Final = 60.0
_WHO: Final = "SELECT CURRENT_USER() AS RESULT"
_DESC: Final = "DESC USER {name}"
#: The user's two places for a public key, with what DESC USER calls their fingerprints.
_SLOTS: Final = {"RSA_PUBLIC_KEY": "RSA_PUBLIC_KEY_FP", "RSA_PUBLIC_KEY_2": "RSA_PUBLIC_KEY_2_FP"}
_SET: Final = {
    "RSA_PUBLIC_KEY": "ALTER USER {name} SET RSA_PUBLIC_KEY={key}",
    "RSA_PUBLIC_KEY_2": "ALTER USER {name} SET RSA_PUBLIC_KEY_2={key}",
}
_EMPTY: Final = ("", "null")
_ADMIN: Final = "An admin of Snowflake runs this once"


@attrs.frozen
class Deployer:
    """The deployment's user in Snowflake, and where its key is kept."""

    ctx: DeploymentContext
    given: Wanted

    @property
    def name(self) -> str:
        return sql.named(self.given.user)

    def client(self, pair: KeyPair) -> Snowflake:
        deadline = Deadline(self.ctx.clock, self.ctx.clock.time() + _SECONDS)
        login = Login(self.given.account, self.given.user, sql.named(self.given.role))
        return Snowflake(Session(deadline), self.ctx.clock, login, pair, self.ctx.addresses.snowflake)

    def fields(self, pair: KeyPair) -> dict[str, str]:
        host = urlsplit(self.ctx.addresses.snowflake or account_url(self.given.account)).hostname or ""
        role, warehouse = sql.named(self.given.role), sql.named(self.given.deployer_warehouse)
        return secret_fields.fields(pair, Connection(self.given.account, self.name, host, role, warehouse))

    def statement(self, pair: KeyPair, slot: str) -> str:
        name, key = sql.identifier(self.name), sql.literal(pair.public)
        return sql.statement(_SET[slot], name=name, key=key).text + ";"


def store(output: Output, ctx: DeploymentContext) -> dict[str, Any]:
    """With a private key that somebody gives. Raises CommandFailed, and then stores nothing."""
    deployer = _deployer(ctx)
    pair = prompt.private_key(output)
    _ = ctx.account
    before = secret_store.read_value(ctx, deployer.given.key_secret)
    prove(output, deployer, pair, before)
    rest = {name: value for name, value in (secret_store.plain(before.fields) if before else {}).items() if name != PASSPHRASE}
    kept = secret_store.put_current(ctx, deployer.given.key_secret, {**rest, **deployer.fields(pair)})
    return _done(output, deployer, pair, kept)


def generate(output: Output, ctx: DeploymentContext) -> dict[str, Any]:
    """Makes a pair that waits for an admin; on the next call proves it and makes it the current one. Raises CommandFailed."""
    deployer, name = _deployer(ctx), _deployer(ctx).given.key_secret
    _ = ctx.account
    waiting = secret_store.read_value(ctx, name, secret_store.GENERATED)
    pair = _pair(waiting) if waiting else None
    if waiting is None or pair is None:
        return _proposed(output, deployer, keypair.make())
    try:
        prove(output, deployer, pair, secret_store.read_value(ctx, name))
    except CommandFailed as failure:
        if failure.code != "SECRETS-PUBLIC-KEY":
            raise
        raise CommandFailed("SECRETS-WAITING", failure.message, failure.hint, failure.details, why=failure.why) from None
    return _done(output, deployer, pair, secret_store.promote(ctx, name, waiting))


def prove(output: Output, deployer: Deployer, pair: KeyPair, before: secret_store.Value | None) -> None:
    """By a login. Raises CommandFailed where the user doesn't have the public key, LakeferryError for all else."""
    try:
        with output.step("logging in to Snowflake"):
            deployer.client(pair).run(sql.Sql(_WHO))
    except Denied as denied:
        if denied.row is not snowflake_errors.AUTH:
            raise
        raise _unknown_key(deployer, pair, before, denied) from None


def _unknown_key(deployer: Deployer, pair: KeyPair, before: secret_store.Value | None, denied: Denied) -> CommandFailed:
    slot, sure = _free_slot(deployer, _pair(before) if before else None)
    statement = deployer.statement(pair, slot)
    who = f"user {deployer.name} of account {deployer.given.account}"
    if sure:
        message, why = (
            f"{who} doesn't have this key's public half",
            "The key that is stored now logs in, so user and account are right.",
        )
    else:
        message = f"Snowflake doesn't let {who} in with this key"
        why = "The user doesn't have its public half; or there is no such user, or account or user are misspelt in the file."
    hint = f"{_ADMIN}, then you this command again: {statement}"
    details = {"sql": statement, "fingerprint": pair.fingerprint, "snowflake": denied.what}
    return CommandFailed("SECRETS-PUBLIC-KEY", message, hint, details, why=why)


def _free_slot(deployer: Deployer, current: KeyPair | None) -> tuple[str, bool]:
    """Where a new public key can go without locking out the current one, and whether the current one was seen to log in."""
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


def _proposed(output: Output, deployer: Deployer, pair: KeyPair) -> dict[str, Any]:
    name = deployer.given.key_secret
    slot, _ = _free_slot(deployer, _pair(secret_store.read_value(deployer.ctx, name)))
    arn, statement = secret_store.stage_pending(deployer.ctx, name, deployer.fields(pair)), deployer.statement(pair, slot)
    output.print(f"A new key pair waits in {name}, {arn}. Its public half is {pair.fingerprint}.")
    output.print(f"{_ADMIN}:\n\n{statement}\n")
    output.print(
        "Where the user isn't there yet: docs/how-to/prepare-snowflake.md has the script that takes the same public key."
    )
    output.print(f"Next: {program_name()} secrets set snowflake --generate --stage {deployer.ctx.stage}, which proves it")
    public = {"fingerprint": pair.fingerprint, "user": deployer.name, "account": deployer.given.account, "state": "waiting"}
    kept = {"secret": name, "arn": arn, "version": "", "changed": False}
    return {"stage": deployer.ctx.stage, "vendor": "snowflake", "key": public, **kept, "sql": statement}


def _done(output: Output, deployer: Deployer, pair: KeyPair, kept: secret_store.StoredSecret) -> dict[str, Any]:
    role = sql.named(deployer.given.role)
    output.print(f"Key {pair.fingerprint}: user {deployer.name} of {deployer.given.account}, in role {role}")
    output.print(kept.describe())
    output.print(f"Next: {program_name()} doctor --stage {deployer.ctx.stage}")
    public = {"fingerprint": pair.fingerprint, "user": deployer.name, "account": deployer.given.account, "state": "current"}
    return {"stage": deployer.ctx.stage, "vendor": "snowflake", "key": public, **kept.document(), "sql": ""}


def _pair(value: secret_store.Value | None) -> KeyPair | None:
    """None where there is none that can be read."""
    if value is None or PRIVATE_KEY not in value.fields:
        return None
    try:
        return keypair.load(value.fields[PRIVATE_KEY], value.fields.get(PASSPHRASE))
    except UnusableKey:
        return None


def _deployer(ctx: DeploymentContext) -> Deployer:
    given = ctx.deployment.snowflake
    if given is None:
        raise CommandFailed("NO-SNOWFLAKE", f"the deployment of stage {ctx.stage} has no [snowflake]")
    return Deployer(ctx, given)
