"""Where both vendors meet in AWS: Tableflow's bucket and the tables in Glue."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from deployments.model import Topic
from lakeferry.deployment.context import Ground
from lakeferry.health import runner as asking
from lakeferry.health import storage
from lakeferry.health.model import Check, Group
from lambdas.shared.aws import error_code

BUCKET: Final = "bucket"
#: A key below the bucket, to ask what may be done with any.
_ANY_KEY: Final = "any/key"
_LISTED: Final = 1000
_SHOWN: Final = 3
_AGAIN: Final = (
    "What was in it is lost. Create it again: `aws s3api create-bucket --bucket {name} --region {region} "
    "--create-bucket-configuration LocationConstraint={region}`; `lakeferry status --drift` then names the settings that it lacks"
)


def needs(here: Ground, wanted: Mapping[str, tuple[str, ...]], bucket_name: str, database: str) -> dict[str, tuple[str, ...]]:
    """Actions by the ARNs that they are asked about."""
    catalog = f"arn:aws:glue:{here.region}:{here.account}"
    on_bucket = f"arn:aws:s3:::{bucket_name}"
    in_glue = dict.fromkeys(
        (f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/any"), wanted["tables"]
    )
    return {on_bucket: wanted["bucket"], f"{on_bucket}/{_ANY_KEY}": wanted["objects"], **in_glue}


def bucket(here: Ground, group: Group, name: str) -> Check:
    state = storage.state_of(here, name)
    if state == "absent":
        return group.fail(BUCKET, f"there is no bucket {name}", _AGAIN.format(name=name, region=here.region))
    if state == "foreign":
        told = f"{name} belongs to another account, or its policy keeps even you out"
        return group.fail(BUCKET, told, "Look at its owner and its policy", f"a bucket of account {here.account}")
    # AWS's first region has no name of its own there.
    region = here.client("s3").get_bucket_location(Bucket=name)["LocationConstraint"] or "us-east-1"
    if region != here.region:
        return group.fail(
            BUCKET,
            f"{name} is in {region}",
            "Tableflow writes in the cluster's region only: move its objects away, delete it and create it again there",
            here.region,
        )
    return _of_strangers(here, group, name)


def _of_strangers(here: Ground, group: Group, name: str) -> Check:
    """Files of a table lie below …/v1/<table>/data and …/metadata."""
    listed = here.client("s3").list_objects_v2(Bucket=name, MaxKeys=_LISTED).get("Contents", [])
    strange = [each["Key"] for each in listed if not is_of_table(each["Key"])]
    if not strange:
        return group.ok(BUCKET, f"{name} in {here.region}")
    told = f"{name} holds what Tableflow didn't write: {', '.join(strange[:_SHOWN])}{' …' if strange[_SHOWN:] else ''}"
    return group.warn(BUCKET, told, "Move it elsewhere: Tableflow wants the bucket for itself, empty at first")


def is_of_table(key: str) -> bool:
    base, middle, rest = key.partition("/v1/")
    return bool(base and middle) and rest.partition("/")[2].startswith(("data/", "metadata/"))


def names(here: Ground) -> list[str]:
    return [_name(topic) for topic in here.deployment.tables_in_glue]


def look(here: Ground, group: Group, database: str, bucket_name: str) -> list[Check]:
    return [
        asking.tried(group, _name(topic), partial(_table, here, group, topic, database=database, bucket_name=bucket_name))
        for topic in here.deployment.tables_in_glue
    ]


def _table(here: Ground, group: Group, topic: Topic, *, database: str, bucket_name: str) -> Check:
    name, wait = (
        _name(topic),
        "Wait some ten minutes after the first record; what keeps it back stands with the catalog integration",
    )
    try:
        found: Mapping[str, Any] = here.client("glue").get_table(DatabaseName=database, Name=topic.name)["Table"]
    except ClientError as error:
        if error_code(error) != "EntityNotFoundException":
            raise
        return group.fail(name, f"Glue doesn't show {database}.{topic.name}", wait)
    location = (found.get("Parameters") or {}).get("metadata_location", "")
    if not location.startswith(f"s3://{bucket_name}/"):
        told = f"{database}.{topic.name} leads to {location or 'no metadata'}"
        return group.fail(
            name, told, "Somebody else wrote it: remove it from Glue, and Tableflow shows it anew", f"s3://{bucket_name}/…"
        )
    return group.ok(name, f"{database}.{topic.name}")


def _name(topic: Topic) -> str:
    return f"Glue table {topic.name}"
