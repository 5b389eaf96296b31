"""The provider of Confluent's resources, with the secrets of the keys that it creates and their rotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from constructs import Construct

from config.deployments import validation
from config.deployments.model import Rotation
from lambdas import contract
from lambdas.shared.settings import ConfluentSettings, RotationSettings
from stacks.constructs.rotation import KeyRotation
from stacks.constructs.runtime import Runtime, list_setting_problems, refuse, require_forms
from stacks.constructs.secrets import StackSecrets, may_read_secret, name_secret_arn
from stacks.constructs.statements import Statement, allow
from stacks.constructs.synthesis import SynthOptions
from stacks.constructs.vendor import VendorProvider

#: The folder of the keys' secrets, below the prefix of all names.
KEYS: Final = "confluent"
_ITS_SECRETS: Final = "The secrets of the keys that this provider creates: all of them are in its own folder."


class ConfluentProvider(VendorProvider):
    """Creates, updates and deletes objects at Confluent with a Cloud API key. `cloud_key_secret` is the name
    of the secret that has it: `{"apiKey": …, "apiSecret": …}`.

    `brought_keys` are names of secrets with further keys that people bring, by what they are for. `secrets`
    holds the keys that are created; `key_secrets` are their names if all are known, and `rotation_scope` is
    the parent of the function that rotates them. Between two rotations, `keep` keys of a secret are valid; a
    replaced key is revoked after `grace_days`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        cloud_key_secret: str,
        brought_keys: Sequence[tuple[str, str]] = (),
        secrets: StackSecrets | None = None,
        key_secrets: Sequence[str] = (),
        rotation_scope: Construct | None = None,
        keep: int = contract.KEYS_KEPT,
        grace_days: int = int(contract.GRACE_DAYS),
        fixed_ids: bool = False,
    ) -> None:
        options = SynthOptions.of(scope)
        _require_secret_names(cloud_key_secret, brought_keys)
        refuse(list_setting_problems(Rotation, {"keep": keep, "grace_days": grace_days}))
        #: The constructs of clusters that exist, by id.
        self.clusters: dict[str, Construct] = {}
        self.secrets = secrets or StackSecrets(
            scope, f"{id}Secrets", runtime=runtime, purpose="Encrypts the keys of Confluent Cloud"
        )
        brought: list[Statement] = []
        for purpose, secret in brought_keys:
            brought += may_read_secret(scope, purpose, name_secret_arn(scope, secret))
        self._may_read_cloud_key = may_read_secret(
            scope, "CloudKey", name_secret_arn(scope, cloud_key_secret)
        )
        super().__init__(
            scope,
            id,
            runtime=runtime,
            settings=ConfluentSettings(
                cloud_key_secret=cloud_key_secret,
                proxy=runtime.proxy,
                confluent_url=options.confluent_url,
                catalog_url=options.catalog_url,
            ),
            statements=[
                *self._may_read_cloud_key,
                *brought,
                allow(
                    "WriteKeys",
                    ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"],
                    [
                        name_secret_arn(scope, f"{runtime.prefix}/{name}")
                        for name in key_secrets or [f"{KEYS}/*"]
                    ],
                    why="" if key_secrets else _ITS_SECRETS,
                ),
                self.secrets.may_use_key(),
            ],
            fixed_ids=fixed_ids,
        )
        self._cloud_key_secret = cloud_key_secret
        self._rotation_scope = rotation_scope or self
        self._keep = keep
        self._grace_days = grace_days
        self._rotation: KeyRotation | None = None

    @property
    def rotation(self) -> KeyRotation:
        """Return the rotation of the keys, which is created when the first key needs it."""
        if self._rotation is None:
            options = SynthOptions.of(self)
            self._rotation = KeyRotation(
                self._rotation_scope,
                "KeyRotation",
                runtime=self.runtime,
                secrets=self.secrets,
                provider=self,
                settings=RotationSettings(
                    cloud_key_secret=self._cloud_key_secret,
                    proxy=self.runtime.proxy,
                    confluent_url=options.confluent_url,
                    catalog_url=options.catalog_url,
                ),
                keep=self._keep,
                grace_days=self._grace_days,
                statements=self._may_read_cloud_key,
            )
        return self._rotation


def _require_secret_names(cloud_key_secret: str, brought_keys: Sequence[tuple[str, str]]) -> None:
    named = {f"brought_keys {purpose}": (validation.SECRET_NAME, secret) for purpose, secret in brought_keys}
    require_forms(cloud_key_secret=(validation.SECRET_NAME, cloud_key_secret), **named)
