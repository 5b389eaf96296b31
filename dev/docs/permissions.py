"""iam.md: the least privileges of the job's role, with the call that needs each."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from dev.docs import markdown
from dev.docs.markdown import format_code

_TABLES: Final = (
    "arn:aws:glue:<region>:<account>:catalog",
    "arn:aws:glue:<region>:<account>:database/<cluster id>",
    "arn:aws:glue:<region>:<account>:table/<cluster id>/*",
)
_AGGREGATES: Final = (
    "arn:aws:glue:<region>:<account>:catalog",
    "arn:aws:glue:<region>:<account>:database/<aggregates database>",
    "arn:aws:glue:<region>:<account>:table/<aggregates database>/*",
)
_TABLEFLOW_BUCKET: Final = ("arn:aws:s3:::<Tableflow bucket>",)
_TABLEFLOW: Final = ("arn:aws:s3:::<Tableflow bucket>/*",)
_BUCKET: Final = ("arn:aws:s3:::<bucket>",)
_FILES: Final = ("arn:aws:s3:::<bucket>/<prefix>/*",)
_WAREHOUSE: Final = ("arn:aws:s3:::<bucket>/warehouse/*",)
_SECRET: Final = ("arn:aws:secretsmanager:<region>:<account>:secret:<pseudonym secret>-??????",)


@attrs.frozen
class Grant:
    """An action on resources, and the call of the job that needs it.

    `purpose` groups the statements of the policy.
    """

    purpose: str
    action: str
    resources: tuple[str, ...]
    call: str

    @property
    def service(self) -> str:
        return self.action.partition(":")[0]


GRANTS: Final = (
    Grant(
        "ReadTables", "glue:GetTable", _TABLES, "reading the table's metadata, before Spark and by Iceberg"
    ),
    Grant(
        "ListTables",
        "s3:ListBucket",
        _TABLEFLOW_BUCKET,
        "a clear error where a snapshot expires during a run: without it S3 answers a file that is gone "
        "with 403 instead of 404",
    ),
    Grant(
        "ReadTables", "s3:GetObject", _TABLEFLOW, "metadata, manifests and data files of the pinned snapshot"
    ),
    Grant(
        "ListFiles",
        "s3:ListBucket",
        _BUCKET,
        "finding published windows and leftovers of dead runs; without it S3 answers a missing object with "
        "403 instead of 404, which is also why it must have no condition on the prefix",
    ),
    Grant("ListFiles", "s3:ListBucketMultipartUploads", _BUCKET, "finding uploads of dead runs"),
    Grant("WriteFiles", "s3:GetObject", _FILES, "manifests, records, and reading the finished file back"),
    Grant("WriteFiles", "s3:PutObject", _FILES, "files (also by multipart upload), manifests, records"),
    Grant(
        "WriteFiles",
        "s3:DeleteObject",
        _FILES,
        "removing what a failed or dead run wrote; nothing that a manifest names",
    ),
    Grant("WriteFiles", "s3:AbortMultipartUpload", _FILES, "ending uploads of failed or dead runs"),
    Grant("ReadKey", "secretsmanager:GetSecretValue", _SECRET, "the pseudonymisation key"),
    Grant(
        "KeepAggregates",
        "glue:GetDatabase",
        _AGGREGATES,
        "whether the database exists, and the location of its tables",
    ),
    Grant(
        "KeepAggregates",
        "glue:CreateDatabase",
        _AGGREGATES,
        "creating it on first use; not needed if it exists",
    ),
    Grant("KeepAggregates", "glue:GetTable", _AGGREGATES, "whether the table exists, and its state"),
    Grant("KeepAggregates", "glue:CreateTable", _AGGREGATES, "creating it on first use"),
    Grant("KeepAggregates", "glue:UpdateTable", _AGGREGATES, "committing to it"),
    Grant("KeepAggregates", "s3:GetObject", _WAREHOUSE, "its metadata and data"),
    Grant("KeepAggregates", "s3:PutObject", _WAREHOUSE, "its metadata and data"),
    Grant("KeepAggregates", "s3:DeleteObject", _WAREHOUSE, "metadata of commits that were refused"),
)
_PURPOSES: Final = {
    "ReadTables": "Each run.",
    "ListTables": "Each run.",
    "ListFiles": "Each run.",
    "WriteFiles": "Each run.",
    "ReadKey": "Contracts that hash columns.",
    "KeepAggregates": "Contracts with `keep_as_table = true`.",
}
_INTRO = """\
What the role of an export needs, and nothing more. A test runs exports under exactly this policy in the embedded AWS, with IAM
enforced, and shows that they fail if any single action is missing, except for actions that only clean up or explain an error.
It was not tested in a live account. `<cluster id>` is the Kafka cluster's id; `<prefix>` is `exports` unless you chose another
one."""
_BESIDE = """\
- **KMS.** Where a bucket or the secret is encrypted with a key of yours, the role also needs `kms:Decrypt` on
  that key, and `kms:GenerateDataKey` on the key of a bucket that it writes to.
- **Glue.** A Glue job's role also writes logs, reads the job's script, and may use the folder for temporary
  files that `--TempDir` names. The role that `cdk deploy` makes has these rights and no others.
- **Tables in Confluent's storage.** Their exports need no right on Glue and Tableflow's bucket, but
  `secretsmanager:GetSecretValue` on the secret with the Tableflow key, and `kms:Decrypt` on the secret's key.
- **Lake Formation.** Where it governs the Tableflow database, grant SELECT and DESCRIBE there too.
- **The Tableflow bucket is read only.** The role must not write to it: Tableflow loses tables whose files
  others change.
- **Readers of the files** need `s3:GetObject` on the objects that manifests name, and on
  `<prefix>/<export>/manifests/*`.
- **`lakeferry query`** needs `glue:GetTables` on both databases and `s3:GetObject` on both tables' files."""


def build_page() -> str:
    return markdown.format_page(
        "IAM permissions",
        _INTRO,
        *[_describe_purpose(purpose, when) for purpose, when in _PURPOSES.items()],
        f"## The policy\n\n{markdown.format_block('json', json.dumps(policy(), indent=2))}",
        f"## Further permissions\n\n{_BESIDE}",
    )


def policy() -> dict[str, Any]:
    """Return an IAM policy with placeholders in its resources."""
    statements = [
        {
            "Sid": _build_sid(purpose, grants),
            "Effect": "Allow",
            "Action": [grant.action for grant in grants],
            "Resource": list(resources),
        }
        for (purpose, resources), grants in _group_grants().items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def _group_grants() -> dict[tuple[str, tuple[str, ...]], list[Grant]]:
    """Return the grants by purpose and resources."""
    groups: dict[tuple[str, tuple[str, ...]], list[Grant]] = {}
    for grant in GRANTS:
        groups.setdefault((grant.purpose, grant.resources), []).append(grant)
    return groups


def _build_sid(purpose: str, grants: list[Grant]) -> str:
    """Return the statement's id.

    It ends in the service if the purpose needs several services, like ReadTablesS3.
    """
    services = {grant.service for grant in GRANTS if grant.purpose == purpose}
    return purpose + (grants[0].service.capitalize() if len(services) > 1 else "")


def _describe_purpose(purpose: str, when: str) -> str:
    parts = [f"## {purpose}", when]
    for (grouped_purpose, resources), grants in _group_grants().items():
        if grouped_purpose == purpose:
            parts.append("On " + ", ".join(map(format_code, resources)) + ":")
            parts.append(
                markdown.format_table(
                    ["action", "for"], [(format_code(grant.action), grant.call) for grant in grants]
                )
            )
    return "\n\n".join(parts)
