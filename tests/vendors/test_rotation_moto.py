"""The moves of labels, checked with a second implementation: every write of a rotation also goes to moto's Secrets Manager, and
afterwards both must have the same versions with the same labels.

moto accepts moves that AWS refuses (from a version that doesn't have the label), has no empty versions, and keeps AWSPENDING
after a rotation. So the strict stand-in refuses first, versions without a value are not compared, and the test removes
AWSPENDING as AWS does.
"""

from __future__ import annotations

import boto3
import pytest
from moto import mock_aws
from rotation_environment import RotationEnvironment
from staged_secrets import CURRENT, PENDING, PREVIOUS, StagedSecrets


class Mirrored(StagedSecrets):
    """Mirrors every write to moto. `seen` counts comparisons."""

    def begin(self, client):
        self.moto, self.seen = client, 0
        for held in set(self.all.values()):
            client.create_secret(Name=held.name)
            for version, (value, labels, _) in held.versions.items():
                if value is not None and labels:
                    given = {"ClientRequestToken": version, "VersionStages": sorted(labels)}
                    client.put_secret_value(SecretId=held.name, SecretString=value, **given)
            self.compare(held)

    def put_secret_value(self, **asked):
        answer = super().put_secret_value(**asked)
        return self._also(self.moto.put_secret_value, asked, answer)

    def update_secret_version_stage(self, **asked):
        answer = super().update_secret_version_stage(**asked)
        return self._also(self.moto.update_secret_version_stage, asked, answer)

    def ended(self, name, version):
        super().ended(name, version)
        if PENDING in self.moto.describe_secret(SecretId=name)["VersionIdsToStages"].get(version, []):
            self.moto.update_secret_version_stage(SecretId=name, VersionStage=PENDING, RemoveFromVersionId=version)
        self.compare(self.all[name])

    def _also(self, call, asked, answer):
        held = self.all[asked["SecretId"]]
        call(**{**asked, "SecretId": held.name})
        self.compare(held)
        return answer

    def compare(self, held):
        self.seen += 1
        ours = {one: sorted(labels) for one, (value, labels, _) in held.versions.items() if labels and value is not None}
        assert self.labels(held.name) == ours

    def labels(self, name):
        found = self.moto.describe_secret(SecretId=name).get("VersionIdsToStages", {})
        return {one: sorted(labels) for one, labels in found.items() if labels}


@pytest.fixture
def env(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with RotationEnvironment() as env, mock_aws():
        env.secrets.__class__ = Mirrored
        env.secrets.begin(boto3.client("secretsmanager", region_name="eu-west-1"))
        yield env


@pytest.mark.parametrize("name", ["kafka", "snowflake"])
def test_four_rotations_move_the_labels_in_moto_too(env, name):
    before = env.secrets.all[name].labelled(CURRENT)
    for _ in range(4):
        version = env.rotate(name)
        assert env.secrets.labels(name) == {version: [CURRENT], before: [PREVIOUS]}
        before = version
        env.clock.sleep(40 * 86400)
    assert env.secrets.seen > 12


def test_a_label_on_another_version_is_found(env):
    env.rotate("kafka")
    version = env.secrets.all["kafka"].labelled(CURRENT)
    env.secrets.all["kafka"].versions[version][1].discard(CURRENT)
    with pytest.raises(AssertionError):
        env.secrets.compare(env.secrets.all["kafka"])
