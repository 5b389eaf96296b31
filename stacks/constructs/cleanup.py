"""Removes on destroy the data that CloudFormation doesn't know: what vendors and jobs wrote to buckets and
databases.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import jsii
from aws_cdk import CustomResource, IStableStringProducer, Lazy, Stack
from constructs import Construct

from lambdas import contract
from stacks.constructs.statements import ITS_STACK, Statement, allow, list_glue_table_arns
from stacks.constructs.synthesis import build_own_arn

_NAMES_UNKNOWN: Final = (
    "On destroy, the deployment's tables go, because the deployment file says so. Their names are not known "
    "here."
)


@jsii.implements(IStableStringProducer)
class _JsonList:
    """A list as JSON, which is read when the template is written: tables may be added until then."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def produce(self) -> str:
        return json.dumps(list(self._names))


class CleanupOnDestroy(CustomResource):
    """Empties `bucket`, or drops the tables of `glue_database` whose files are in `table_bucket`, and the
    database if it then is empty, unless `keep_database`. It does so when the whole stack is deleted, and
    only then.

    With `only_tables`, no other table is dropped, and none at all if it is empty. With `delete_policy`, the
    bucket's policy is deleted before its objects: it lets only Tableflow delete them.

    CloudFormation deletes a resource before those that it depends on. So Tableflow's tables and catalog,
    which write, depend on this resource; and this resource depends on the bucket that it empties, on its
    permissions and on Tableflow's role.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        service_token: str,
        bucket: str | None = None,
        glue_database: str | None = None,
        table_bucket: str | None = None,
        only_tables: Sequence[str] | None = None,
        keep_database: bool = False,
        delete_policy: bool = False,
    ) -> None:
        targets = {
            "bucket": bucket,
            "delete_policy": "true" if delete_policy else "",
            "glue_database": glue_database,
            "table_bucket": table_bucket,
            "keep_database": "true" if keep_database else "",
        }
        named: dict[str, Any] = {name: value for name, value in targets.items() if value}
        if only_tables is not None:  # an empty list has another meaning than none
            named["only_tables"] = Lazy.string(_JsonList(only_tables))
        super().__init__(
            scope, id, resource_type=contract.CLEANUP_TYPE, service_token=service_token, properties=named
        )


def may_read_own_stack(scope: Construct, *calls: str) -> Statement:
    """Allow `calls` of CloudFormation on the own stack.

    Its ARN ends in a UUID that isn't known at synthesis.
    """
    stack = Stack.of(scope)
    return allow(
        "ReadOwnStack",
        [f"cloudformation:{call}" for call in calls],
        [build_own_arn(scope, "cloudformation", f"stack/{stack.stack_name}/*")],
        why=ITS_STACK,
    )


def may_empty(bucket_arn: str, *, delete_policy: bool = False) -> list[Statement]:
    of_policy = [allow("DeletePolicy", ["s3:DeleteBucketPolicy"], [bucket_arn])] if delete_policy else []
    return [
        *of_policy,
        allow("ListObjects", ["s3:ListBucketVersions", "s3:ListBucketMultipartUploads"], [bucket_arn]),
        allow(
            "RemoveObjects",
            ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"],
            [f"{bucket_arn}/*"],
            why=(
                "On destroy, all objects and versions of this one bucket go, because the deployment file "
                "says so."
            ),
        ),
    ]


def may_drop_tables(scope: Construct, database: str, *, keep_database: bool) -> list[Statement]:
    """Allow deleting the tables and, unless `keep_database`, the database.

    Glue also checks the permission to delete a database's user-defined functions, even if it has none.
    """
    arns = list_glue_table_arns(scope, database)
    if keep_database:
        return [allow("DropTables", ["glue:GetTables", "glue:DeleteTable"], arns, why=_NAMES_UNKNOWN)]
    return [
        allow(
            "DropTables",
            ["glue:GetTables", "glue:DeleteTable", "glue:DeleteDatabase"],
            [
                *arns,
                build_own_arn(scope, "glue", f"userDefinedFunction/{database}/*"),
            ],
            why=_NAMES_UNKNOWN,
        ),
        allow(
            "ReadLakeFormation",
            ["lakeformation:GetDataLakeSettings"],
            ["*"],
            why=(
                "Lake Formation has no resources for its settings. They say whether Glue's lists have all "
                "tables."
            ),
        ),
    ]
