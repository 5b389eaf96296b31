"""A deployment's tables, exports and secrets by name: a JSON object in S3 that the stacks publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import attrs
import cattrs

from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError
from lambdas.shared.s3 import Objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SCHEME: Final = "s3"


@attrs.frozen
class Table:
    """`name` is the table's name in Glue, `snowflake` that in the deployment's Snowflake schema, "" if it has
    none. `managed` says that Confluent stores it.

    `error_log` is the topic for records that Tableflow can't write, "" if there is none.
    """

    topic: str
    name: str
    in_glue: bool = True
    managed: bool = False
    snowflake: str = ""
    error_log: str = ""


@attrs.frozen
class Export:
    """`recipients` is the number of addresses in the deployment file. `recipient_ids` has the ids of
    recipients who get mails of their own, with links that work for `link_days`; it is empty if all get the
    same one. `addresses` has their addresses in the same order, if SES sends the mails.

    `first_day` (ISO 8601) is a day in the first window to export; "" means that the contract decides.
    """

    export: str
    job: str
    cron: str
    zone: str
    late_after_hours: float
    recipients: int = 0
    recipient_ids: list[str] = attrs.Factory(list)
    addresses: list[str] = attrs.Factory(list)
    link_days: int = 0
    link_downloads: int = 0
    first_day: str = ""


@attrs.frozen
class DeploymentSettings:
    """`secrets` are names of secrets that rotate; `deployer_secrets` are names of secrets that people
    created. `tables_exist` says that the tables are those of a cluster of somebody else, of which monitoring
    has no key.
    """

    tables: list[Table] = attrs.Factory(list)
    exports: list[Export] = attrs.Factory(list)
    secrets: list[str] = attrs.Factory(list)
    deployer_secrets: list[str] = attrs.Factory(list)
    tables_exist: bool = False


def read(s3: S3Client, url: str) -> DeploymentSettings:
    """Read the settings.

    Raises LakeferryError if the object doesn't exist or isn't what the stacks publish.
    """
    parts = urlsplit(url)
    published = Objects(s3, parts.netloc).read(parts.path.lstrip("/")) if parts.scheme == _SCHEME else None
    if published is None:
        raise LakeferryError(errors.SETTINGS, f"there is no object {url}")
    try:
        return cattrs.structure(published.document, DeploymentSettings)
    except cattrs.BaseValidationError:
        raise LakeferryError(errors.SETTINGS, f"{url} is not a deployment's settings") from None
