"""What the monitoring function may do with tables and with keys of accounts that can only read."""

from __future__ import annotations

from constructs import Construct

from stacks.constructs.secrets import may_decrypt_tables, through
from stacks.constructs.statements import ITS_KEYS, ONE_DATABASE, Statement, allow, list_glue_table_arns
from stacks.lake import Lake


def may_read_tables(scope: Construct, lake: Lake, database: str) -> list[Statement]:
    """Allow what the age of tables in Glue needs: the tables, and their metadata."""
    return [
        allow("GetTables", ["glue:GetTable"], list_glue_table_arns(scope, database), why=ONE_DATABASE),
        allow("ReadMetadata", ["s3:GetObject"], [f"{lake.tableflow_arn}/*/metadata/*"], why=ITS_KEYS),
        *may_decrypt_tables(scope, lake.tableflow_key_arn),
        allow(
            "FindMetadata",
            ["s3:ListBucket"],
            [lake.tableflow_arn],
            {"StringLike": {"s3:prefix": ["*/metadata/*"]}},
        ),
    ]


def may_use_keys(scope: Construct, readers: list[str], keys: list[str]) -> list[Statement]:
    """Allow the keys of accounts that can only read, if there are any. `readers` are ARNs of their secrets,
    `keys` those of the secrets' KMS keys.
    """
    if not readers:
        return []
    return [
        allow("ReadReadersKeys", ["secretsmanager:GetSecretValue"], readers),
        allow("DecryptKeys", ["kms:Decrypt"], keys, through(scope, "secretsmanager")),
    ]
