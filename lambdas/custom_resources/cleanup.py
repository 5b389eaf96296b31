"""Remove what vendors and jobs leave behind: objects and uploads in a bucket, tables of a Glue database.

A Glue database may have other people's tables. A table is the deployment's if its files are in the
deployment's own bucket or, in a bucket that others use too, if the states of its resources say that one of
them enabled Tableflow for it. Only such tables are dropped, and the database only if nothing else is in it
and it isn't that of somebody else's integration. Glue's lists leave out the tables that Lake Formation hides
from the caller, and a database is deleted with all its tables. So the database stays unless Lake Formation
can't hide any. An empty database costs nothing.

Each method works until the deadline and returns True if nothing is left. Something that is already gone
counts as removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import attrs

from lambdas.confluent.properties import TableflowTopicProps
from lambdas.shared.aws import raise_instead, translate_aws_errors, translate_error
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import Refused

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_glue.type_defs import TableTypeDef
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

    from lambdas.custom_resources.state import ResourceState

#: Settings of Lake Formation with the permissions of new databases and tables.
_DEFAULTS: Final = ("CreateDatabaseDefaultPermissions", "CreateTableDefaultPermissions")
_IAM_DECIDES: Final = "IAM_ALLOWED_PRINCIPALS"
_GONE: Final = ("NoSuchBucket", "NoSuchUpload", "EntityNotFoundException")


#: Statuses of a stack that is being deleted. In any other status, only this resource is removed, and the
#: stack's data is still in use.
_DELETING: Final = ("DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS")


@attrs.frozen
class Cleaner:
    """`client` returns the boto3 client of a service. Only buckets of `account` are emptied.

    The properties name a `bucket`, or a `glue_database` and the `table_bucket` with its tables' files. With
    `only_tables`, a JSON list that may be empty, no other table is dropped, because the bucket may have
    tables of others, and of the list only those that `find_own_tables` finds: somebody else may have enabled
    Tableflow for a topic before. With `keep_database`, the database stays, because somebody else's
    integration writes to it. With `delete_policy`, the bucket's policy goes before its objects, because it
    lets only Tableflow delete them.
    """

    client: Callable[[str], Any]
    account: str
    deadline: Deadline
    find_own_tables: Callable[[str], frozenset[str]] = lambda bucket: frozenset()

    def remove(self, properties: Mapping[str, Any]) -> bool:
        """Empty the bucket or database that `properties` name. Return True if nothing is left.

        Raises Transient, and LakeferryError if AWS refuses.
        """
        if bucket := properties.get("bucket"):
            return self.bucket(bucket, delete_policy=properties.get("delete_policy") == "true")
        if database := properties.get("glue_database"):
            table_bucket = properties.get("table_bucket", "")
            names = None
            if "only_tables" in properties:
                names = self.find_own_tables(table_bucket).intersection(json.loads(properties["only_tables"]))
            return self.glue_database(
                database,
                table_bucket,
                names=names,
                keep_database=properties.get("keep_database") == "true",
            )
        return True

    def stack_is_deleting(self, stack_id: str) -> bool:
        """Return whether the whole stack is being deleted.

        Raises Transient, and LakeferryError if AWS refuses.
        """
        with translate_aws_errors("describing the stack"):
            stacks = self.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
        return any(stack["StackStatus"] in _DELETING for stack in stacks)

    def bucket(self, name: str, *, delete_policy: bool = False) -> bool:
        s3: S3Client = self.client("s3")
        if delete_policy:
            with suppress(_Gone), _translate_errors(f"deleting the policy of bucket {name}"):
                s3.delete_bucket_policy(Bucket=name, ExpectedBucketOwner=self.account)
        while self._has_time():
            try:
                with _translate_errors(f"emptying bucket {name}"):
                    if not self._remove_batch(s3, name):
                        return True
            except _Gone:
                return True
        return False

    def glue_database(
        self,
        name: str,
        table_bucket: str,
        *,
        names: Collection[str] | None = None,
        keep_database: bool = False,
    ) -> bool:
        """Drop the tables whose files are in `table_bucket`, of `names` only if given, and, unless
        `keep_database`, the database if it then certainly has no table.

        "" is no bucket.
        """
        glue: GlueClient = self.client("glue")
        while self._has_time():
            try:
                with _translate_errors(f"removing Glue database {name}"):
                    tables = _list_tables(glue, name)
                    own_tables = [
                        table
                        for table in tables
                        if is_table_in(table, table_bucket) and (names is None or table["Name"] in names)
                    ]
                    for table in own_tables:
                        with (
                            suppress(_Gone),
                            _translate_errors(f"removing Glue table {name}.{table['Name']}"),
                        ):
                            glue.delete_table(DatabaseName=name, Name=table["Name"])
                    if not (tables or keep_database) and lists_all_tables(self.client("lakeformation")):
                        glue.delete_database(Name=name)
                    if not own_tables:
                        return True
            except _Gone:
                return True
        return False

    def _has_time(self) -> bool:
        return self.deadline.clock.time() < self.deadline.at

    def _remove_batch(self, s3: S3Client, bucket: str) -> bool:
        """Remove up to a thousand versions and a page of uploads. Return False if there were none."""
        owner = self.account
        listed = s3.list_object_versions(Bucket=bucket, ExpectedBucketOwner=owner, MaxKeys=1000)
        versions = [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]
        if versions:
            objects: list[ObjectIdentifierTypeDef] = [
                {"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions
            ]
            answer = s3.delete_objects(
                Bucket=bucket, ExpectedBucketOwner=owner, Delete={"Objects": objects, "Quiet": True}
            )
            refused = answer.get("Errors", [])
            if refused:
                raise translate_error(f"removing an object of bucket {bucket}", refused[0])
        uploads = s3.list_multipart_uploads(Bucket=bucket, ExpectedBucketOwner=owner).get("Uploads", [])
        for upload in uploads:
            with suppress(_Gone), _translate_errors("ending an upload"):
                s3.abort_multipart_upload(
                    Bucket=bucket, ExpectedBucketOwner=owner, Key=upload["Key"], UploadId=upload["UploadId"]
                )
        return bool(versions or uploads)


def _list_tables(glue: GlueClient, database: str) -> list[TableTypeDef]:
    page = glue.get_tables(DatabaseName=database)
    tables = page["TableList"]
    while token := page.get("NextToken"):
        page = glue.get_tables(DatabaseName=database, NextToken=token)
        tables += page["TableList"]
    return tables


def list_own_tables(states: Iterable[ResourceState], bucket: str) -> frozenset[str]:
    """Return the names in Glue of the tables in `bucket` for whose topics the resources with these states
    enabled Tableflow, also if they have disabled it since.
    """
    tables = set()
    for state in states:
        is_own = state.facts.owned or state.facts.removed_own
        is_table = state.given.get("kind") == TableflowTopicProps.TYPE and state.given.get("bucket") == bucket
        if is_own and is_table:
            tables.add(state.given["topic"].lower())  # Glue stores names in lower case
    return frozenset(tables)


def is_table_in(table: Mapping[str, Any], bucket: str) -> bool:
    """Return whether the files of a table of Glue are in the bucket. False for a table without a location."""
    locations = (
        table.get("StorageDescriptor", {}).get("Location", ""),
        table.get("Parameters", {}).get("metadata_location", ""),
    )
    return bool(bucket) and any(location.startswith(f"s3://{bucket}/") for location in locations)


def lists_all_tables(lake_formation: Any) -> bool:
    """Return whether Glue's lists have all tables. False if that isn't known. Raises Transient.

    Glue returns only the tables on which the caller has a permission of Lake Formation. By default the group
    of all whom IAM allows, IAMAllowedPrincipals, has all permissions on each table; a data lake administrator
    can take them away from one table. Without an administrator, and with these defaults, IAM alone decides.
    Source: Lake Formation's developer guide, "Metadata permissions" and "Implicit Lake Formation
    permissions"; the API reference of DataLakeSettings.
    """
    try:
        with translate_aws_errors("reading the settings of Lake Formation"):
            settings = lake_formation.get_data_lake_settings()["DataLakeSettings"]
    except Refused:
        return False
    has_administrator = any(settings.get(name) for name in ("DataLakeAdmins", "ReadOnlyAdmins"))
    return not has_administrator and all(gives_all_to_iam(settings.get(name) or []) for name in _DEFAULTS)


def gives_all_to_iam(permissions: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether these default permissions leave a new database or table to IAM alone."""
    return any(
        permission.get("Principal", {}).get("DataLakePrincipalIdentifier") == _IAM_DECIDES
        and "ALL" in permission.get("Permissions", [])
        for permission in permissions
    )


class _Gone(Exception):
    """AWS answered that the object doesn't exist."""


@contextmanager
def _translate_errors(doing: str) -> Iterator[None]:
    """Raise _Gone for something that doesn't exist, and for other errors what `aws_call` raises."""
    with translate_aws_errors(doing), raise_instead(_GONE, _Gone):
        yield
