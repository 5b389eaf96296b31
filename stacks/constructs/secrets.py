"""Secrets of one stack, with the key that encrypts them: a key in another stack would tie the two into a knot."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from aws_cdk import CfnTag, Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stacks.base import LakeferryStack
from stacks.constructs.statements import Statement, allow


def encryption_key(scope: Construct, name: str, purpose: str, removal: RemovalPolicy = RemovalPolicy.DESTROY) -> kms.Key:
    """Rotates each year. AWS keeps it for a week after its deletion, the least that KMS allows."""
    return kms.Key(
        scope,
        name,
        description=purpose,
        enable_key_rotation=True,
        pending_window=Duration.days(7),
        removal_policy=removal,
    )


class SecretsOfStack(Construct):
    """Secrets are made empty; who makes the credential fills them."""

    def __init__(self, stack: LakeferryStack, name: str, *, purpose: str, keep: bool = False) -> None:
        super().__init__(stack, name)
        self._stack = stack
        self._removal = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
        self.key = encryption_key(self, "Key", purpose, self._removal)
        self.by_path: dict[str, str] = {}

    def empty(self, name: str, path: str, purpose: str, tags: Mapping[str, str] | None = None) -> str:
        """The ARN of a secret without a value, for a function of ours to fill. Its name is known before it is there."""
        secret = secretsmanager.CfnSecret(
            self,
            name,
            name=f"{self._stack.deployment.prefix}/{path}",
            description=purpose,
            kms_key_id=self.key.key_arn,
            tags=[CfnTag(key=tag, value=value) for tag, value in (tags or {}).items()] or None,
        )
        secret.apply_removal_policy(self._removal)
        self.by_path[path] = secret.ref
        return secret.ref

    def random_key(self, name: str, purpose: str) -> str:
        """The ARN of a secret with a key made by Secrets Manager: 64 letters and digits, which are base64 of 48 bytes."""
        secret = secretsmanager.CfnSecret(
            self,
            name,
            description=purpose,
            kms_key_id=self.key.key_arn,
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                secret_string_template="{}",  # noqa: S106  (an empty object, to which the key is added)
                generate_string_key="key",
                password_length=64,
                exclude_punctuation=True,
                exclude_characters=string.punctuation,
            ),
        )
        secret.apply_removal_policy(self._removal)
        return secret.ref

    @property
    def arns(self) -> list[str]:
        """Of those that functions of ours fill."""
        return list(self.by_path.values())

    def may_use_key(self) -> Statement:
        """To read and to write, through Secrets Manager only."""
        return allow(
            "UseKeyOfSecrets",
            ["kms:Decrypt", "kms:GenerateDataKey"],
            [self.key.key_arn],
            through(self._stack, "secretsmanager"),
        )


def through(stack: LakeferryStack, service: str) -> dict[str, Any]:
    return {"StringEquals": {"kms:ViaService": f"{service}.{stack.region}.{stack.url_suffix}"}}


def named_secret(stack: LakeferryStack, name: str) -> str:
    """The ARN of a secret of which only the name is known: Secrets Manager adds six signs to the name."""
    return stack.own_arn("secretsmanager", f"secret:{name}-??????")
