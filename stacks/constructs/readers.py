"""A role with which people of the account read one export: IAM Identity Center's groups, roles and users."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.constructs.secrets import may_decrypt_files
from stacks.constructs.statements import ONE_PREFIX, Statement, allow, create_role
from stacks.lake import Lake


def may_read_export(scope: Construct, lake: Lake, export: str) -> list[Statement]:
    """Allow reading the files of an export and their manifests, and nothing else in the bucket."""
    folder = f"{lake.prefixes.exports}/{export}"
    files = [f"{lake.arn}/{folder}/{part}/*" for part in ("data", "manifests")]
    in_folder = {"StringLike": {"s3:prefix": [f"{folder}/*"]}}
    return [
        allow("ReadFiles", ["s3:GetObject"], files, why=ONE_PREFIX),
        allow("ListFiles", ["s3:ListBucket"], [lake.arn], in_folder),
        *may_decrypt_files(scope, lake.key_arn),
    ]


def create_reader_role(
    scope: Construct, id: str, *, lake: Lake, export: str, readers: Sequence[str]
) -> iam.Role:
    """Return a role that `readers`, which are ARNs of IAM roles and users, may assume.

    It trusts their accounts on the condition that the caller is one of them: IAM refuses a role whose
    trust policy names a role that doesn't exist, and a role of Identity Center gets another name when its
    permission set is assigned again.
    """
    accounts = sorted({reader.split(":")[4] for reader in readers})
    patterns = [_write_pattern(reader) for reader in readers]
    is_reader = {"ArnLike": {"aws:PrincipalArn": patterns}}
    trusted = [iam.AccountPrincipal(account).with_conditions(is_reader) for account in accounts]
    return create_role(
        scope,
        id,
        trusts=iam.CompositePrincipal(*trusted),
        purpose=f"Reads the files of export {export}",
        statements=may_read_export(scope, lake, export),
    )


def _write_pattern(reader: str) -> str:
    """Return a pattern for aws:PrincipalArn. The end of a role of Identity Center has 16 characters: with *
    in their place, a permission set whose name begins the same would match too.
    """
    return f"{reader.removesuffix('*')}{'?' * 16}" if reader.endswith("_*") else reader
