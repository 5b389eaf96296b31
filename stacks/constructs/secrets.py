"""Secrets of one stack, with the key that encrypts them: a key in another stack would make a circular
dependency.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import jsii
from aws_cdk import CfnTag, Duration, IStableListProducer, Lazy, RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stacks.constructs.runtime import Runtime
from stacks.constructs.statements import Statement, allow
from stacks.constructs.synthesis import build_own_arn


def create_encryption_key(
    scope: Construct, id: str, purpose: str, removal: RemovalPolicy = RemovalPolicy.DESTROY
) -> kms.Key:
    """Return a key that rotates each year. AWS keeps it for a week after its deletion, the minimum in KMS."""
    return kms.Key(
        scope,
        id,
        description=purpose,
        enable_key_rotation=True,
        pending_window=Duration.days(7),
        removal_policy=removal,
    )


@attrs.frozen
class Secret:
    """`id` is the construct's, `name` the one in Secrets Manager."""

    id: str
    name: str
    arn: str


@jsii.implements(IStableListProducer)
class _Arns:
    """The ARNs of secrets, read when the template is written."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._secrets = secrets

    def produce(self) -> list[str]:
        return [secret.arn for secret in self._secrets]


class StackSecrets(Construct):
    """Secrets are created empty; the function that makes the credential fills them."""

    def __init__(
        self, scope: Construct, id: str, *, runtime: Runtime, purpose: str, keep: bool = False
    ) -> None:
        super().__init__(scope, id)
        self._prefix = runtime.prefix
        self._removal = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else RemovalPolicy.DESTROY
        #: The key that the deployment file names, or one that is created.
        self.key_arn = (
            runtime.secrets_key_arn or create_encryption_key(self, "Key", purpose, self._removal).key_arn
        )
        #: Secrets whose values functions write.
        self.filled: list[Secret] = []

    def empty(self, id: str, path: str, purpose: str, tags: Mapping[str, str] | None = None) -> Secret:
        """Return a secret without a value. Its name is known at synthesis."""
        name = f"{self._prefix}/{path}"
        bare = secretsmanager.CfnSecret(
            self,
            id,
            name=name,
            description=purpose,
            kms_key_id=self.key_arn,
            tags=[CfnTag(key=tag, value=value) for tag, value in (tags or {}).items()] or None,
        )
        bare.apply_removal_policy(self._removal)
        secret = Secret(id, name, bare.ref)
        self.filled.append(secret)
        return secret

    def generated(self, id: str, path: str, purpose: str, field: str) -> Secret:
        """Return a secret whose first value Secrets Manager generates: 64 letters and digits in `field`."""
        name = f"{self._prefix}/{path}"
        bare = secretsmanager.CfnSecret(
            self,
            id,
            name=name,
            description=purpose,
            kms_key_id=self.key_arn,
            generate_secret_string=_generate(field),
        )
        bare.apply_removal_policy(self._removal)
        secret = Secret(id, name, bare.ref)
        self.filled.append(secret)
        return secret

    def random_key(self, id: str, purpose: str) -> str:
        """Return the ARN of a secret with a key that Secrets Manager generates: 64 letters and digits, base64
        of 48 bytes.
        """
        secret = secretsmanager.CfnSecret(
            self,
            id,
            description=purpose,
            kms_key_id=self.key_arn,
            generate_secret_string=_generate("key"),
        )
        secret.apply_removal_policy(self._removal)
        return secret.ref

    @property
    def arns(self) -> list[str]:
        """Return the ARNs of the secrets whose values functions write, those that are added later among
        them.
        """
        return Lazy.list(_Arns(self.filled))

    def may_decrypt(self) -> Statement:
        """Allow the key for reading secrets, through Secrets Manager only."""
        return allow("DecryptSecrets", ["kms:Decrypt"], [self.key_arn], through(self, "secretsmanager"))

    def may_use_key(self) -> Statement:
        """Allow the key for reading and writing secrets, through Secrets Manager only."""
        return allow(
            "UseKeyOfSecrets",
            ["kms:Decrypt", "kms:GenerateDataKey"],
            [self.key_arn],
            through(self, "secretsmanager"),
        )


def _generate(field: str) -> secretsmanager.CfnSecret.GenerateSecretStringProperty:
    return secretsmanager.CfnSecret.GenerateSecretStringProperty(
        secret_string_template="{}",  # noqa: S106  (an empty object, to which the key is added)
        generate_string_key=field,
        password_length=64,
        exclude_punctuation=True,
        exclude_characters=string.punctuation,
    )


def through(scope: Construct, service: str) -> dict[str, Any]:
    stack = Stack.of(scope)
    return {"StringEquals": {"kms:ViaService": f"{service}.{stack.region}.{stack.url_suffix}"}}


def may_decrypt_tables(scope: Construct, key_arn: str) -> list[Statement]:
    """Allow reading Tableflow's bucket through its KMS key, if one is named."""
    if not key_arn:
        return []
    return [allow("DecryptTables", ["kms:Decrypt"], [key_arn], through(scope, "s3"))]


def may_encrypt_tables(scope: Construct, key_arn: str) -> list[Statement]:
    """Allow writing to Tableflow's bucket through its KMS key, if one is named."""
    if not key_arn:
        return []
    actions = ["kms:Decrypt", "kms:GenerateDataKey"]
    return [allow("EncryptTables", actions, [key_arn], through(scope, "s3"))]


def may_decrypt_files(scope: Construct, key_arn: str) -> list[Statement]:
    """Allow reading the lake bucket through its KMS key, if one is named."""
    if not key_arn:
        return []
    return [allow("DecryptFiles", ["kms:Decrypt"], [key_arn], through(scope, "s3"))]


def may_encrypt_files(scope: Construct, key_arn: str) -> list[Statement]:
    """Allow writing to the lake bucket through its KMS key, if one is named. Uploads in
    parts also decrypt.
    """
    if not key_arn:
        return []
    actions = ["kms:Decrypt", "kms:GenerateDataKey"]
    return [allow("EncryptFiles", actions, [key_arn], through(scope, "s3"))]


def name_secret_arn(scope: Construct, name: str) -> str:
    """Return the pattern of a secret's ARN, for IAM only: Secrets Manager adds six characters to the name."""
    return build_own_arn(scope, "secretsmanager", f"secret:{name}-??????")


def may_read_secret(scope: Construct, what: str, arn: str) -> list[Statement]:
    """Allow reading a secret that the deployment did not create. `what` ends the statements' ids, `arn` may
    be a pattern.

    The secret's KMS key is not known. Secrets Manager tells KMS the ARN of the secret that it decrypts.
    """
    only = through(scope, "secretsmanager") | {"StringLike": {"kms:EncryptionContext:SecretARN": arn}}
    why = "The conditions allow one secret, through Secrets Manager only."
    return [
        allow(f"Read{what}", ["secretsmanager:GetSecretValue"], [arn]),
        allow(f"Decrypt{what}", ["kms:Decrypt"], [build_own_arn(scope, "kms", "key/*")], only, why=why),
    ]
