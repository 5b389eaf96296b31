"""Checks the permissions of the customer's role by trying each action that Tableflow needs.

Deletes what it creates, except the Glue database.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

from botocore.exceptions import ClientError

from simulators.confluent.tableflow_lake import LakeRefused, call_or_refuse, require_allowed
from simulators.core.aws_access import Access


def probe_bucket(access: Access, name: str, region: str, *, is_known: bool) -> None:
    """Check the bucket, which must be empty unless it `is_known`: used by Tableflow before.

    Raises LakeRefused.
    """
    s3 = access.client("s3")
    answer = call_or_refuse(f"s3:GetBucketLocation on {name}", s3.get_bucket_location, Bucket=name)
    location = answer["LocationConstraint"]
    if (location or "us-east-1") != region:
        raise LakeRefused(f"The bucket {name} is in {location}, and the Kafka cluster in {region}")
    listing = call_or_refuse(f"s3:ListBucket on {name}", s3.list_objects_v2, Bucket=name, MaxKeys=1)
    if listing.get("KeyCount") and not is_known:
        raise LakeRefused(f"The bucket {name} is not empty")
    require_allowed(f"s3:ListBucketMultipartUploads on {name}", s3.list_multipart_uploads, Bucket=name)
    _probe_objects(s3, name)


def _probe_objects(s3: Any, bucket: str) -> None:
    """Try the actions on objects. The multipart upload is aborted, so that no object remains."""
    key = f"probe/{uuid.uuid4()}"
    answer = call_or_refuse(f"s3:PutObject on {bucket}", s3.create_multipart_upload, Bucket=bucket, Key=key)
    upload = {"Bucket": bucket, "Key": key, "UploadId": answer["UploadId"]}
    require_allowed(f"s3:ListMultipartUploadParts on {bucket}", s3.list_parts, **upload)
    require_allowed(f"s3:AbortMultipartUpload on {bucket}", s3.abort_multipart_upload, **upload)
    require_allowed(f"s3:GetObject on {bucket}", s3.get_object, Bucket=bucket, Key=key)


def probe_tagging(access: Access, location: str) -> None:
    """Try s3:PutObjectTagging on the table's metadata file at `location`. Raises LakeRefused."""
    name, _, key = location.removeprefix("s3://").partition("/")
    require_allowed(
        f"s3:PutObjectTagging on {name}",
        access.client("s3").put_object_tagging,
        Bucket=name,
        Key=key,
        Tagging={"TagSet": []},
    )


def probe_glue(access: Access, database: str) -> None:
    """Try the actions on the database, which remains, and on a table in it, which is deleted again.

    Raises LakeRefused.
    """
    client = access.client("glue")
    name = f"confluent_probe_{uuid.uuid4().hex}"
    table = {"DatabaseName": database, "Name": name}
    versions = {"DatabaseName": database, "TableName": name}
    creation = {"DatabaseName": database, "TableInput": {"Name": name}}
    for action, call, parameters in (
        ("glue:GetDatabases", client.get_databases, {}),
        ("glue:CreateDatabase", client.create_database, {"DatabaseInput": {"Name": database}}),
        ("glue:GetDatabase", client.get_database, {"Name": database}),
        (
            "glue:UpdateDatabase",
            client.update_database,
            {"Name": database, "DatabaseInput": {"Name": database}},
        ),
        ("glue:CreateTable", client.create_table, creation),
        ("glue:UpdateTable", client.update_table, creation),
        ("glue:GetTable", client.get_table, table),
        ("glue:GetTables", client.get_tables, {"DatabaseName": database}),
        ("glue:GetTableVersion", client.get_table_version, versions | {"VersionId": "0"}),
        ("glue:GetTableVersions", client.get_table_versions, versions),
        ("glue:DeleteTable", client.delete_table, table),
    ):
        try:
            require_allowed(action, call, **parameters)
        except LakeRefused:
            # The table remains if the role may not delete it, as at the vendor.
            with contextlib.suppress(ClientError):
                client.delete_table(**table)
            raise
