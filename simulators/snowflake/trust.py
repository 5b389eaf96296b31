"""Sessions that Snowflake gets from the customer's roles, and what it finds when it tries them."""

from __future__ import annotations

import re
from typing import Any, Final

from simulators.snowflake.account import Account
from simulators.snowflake.lake import Access, AwsRefused, refused
from simulators.snowflake.model import Integration, Location, Volume

#: Where no embedded AWS is attached, nobody can assume anything, and this stands for Snowflake's account.
_NOBODYS_ACCOUNT: Final = "000000000000"
_PASSED: Final = "PASSED"
_SKIPPED: Final = "SKIPPED"
#: Nothing ends with it: reading it shows whether reading is allowed.
_PROBE: Final = "snowflake-read-probe"


def user_arn(account: Account) -> str:
    name = _user(account)
    return account.lake.vendor_user(name) if account.lake else f"arn:aws:iam::{_NOBODYS_ACCOUNT}:user/vendor/{name}"


def forget(account: Account) -> None:
    if account.lake:
        account.lake.forget_vendor_user(_user(account))


def _user(account: Account) -> str:
    return f"{account.name.lower().replace('_', '-')}-s"


def of_location(account: Account, location: Location) -> Access:
    """Raises AwsRefused."""
    assert account.lake is not None, "callers look first"
    return account.lake.assume(_user(account), location.role_arn, location.external_id)


def of_integration(account: Account, integration: Integration) -> Access:
    """Raises AwsRefused, also where the endpoint is another region's than the one that is signed for."""
    assert account.lake is not None, "callers look first"
    if f".{integration.signing_region}." not in integration.catalog_uri:
        raise AwsRefused(
            f"Credential should be scoped to a valid region, not '{integration.signing_region}' "
            f"for {integration.catalog_uri}. (Error Code: InvalidSignatureException)",
            "403",
        )
    access = account.lake.assume(_user(account), integration.role_arn, integration.external_id, integration.signing_region)
    if integration.catalog_name != account.lake.account:
        resource = f"arn:aws:glue:{integration.signing_region}:{integration.catalog_name}:catalog"
        raise AwsRefused(f"not authorized to perform: glue:GetCatalog on resource: {resource}", "403")
    return access


def verify_volume(account: Account, volume: Volume) -> dict[str, Any]:
    """As SYSTEM$VERIFY_EXTERNAL_VOLUME says it. Without AWS, all is well."""
    location = volume.locations[0]
    found = _Findings(account, volume, location)
    if account.lake:
        found.look()
    results = found.results
    well = all(each in (_PASSED, _SKIPPED) for each in results.values())
    identity = f"STORAGE_AWS_IAM_USER_ARN: {user_arn(account)}; STORAGE_AWS_EXTERNAL_ID: {location.external_id}"
    return {
        "success": well,
        "storageLocationSelectionResult": _PASSED if well else next(v for v in results.values() if v not in (_PASSED, _SKIPPED)),
        "storageLocationName": location.label,
        "servicePrincipalProperties": identity,
        "location": location.base_url,
        "storageAccount": None,
        "region": found.region,
        **results,
        "azureGetUserDelegationKeyResult": _SKIPPED,
    }


class _Findings:
    def __init__(self, account: Account, volume: Volume, location: Location) -> None:
        self._account, self._writes, self._location = account, volume.allow_writes, location
        self.region: str | None = account.lake.root.region if account.lake else None
        tried = _PASSED if volume.allow_writes else _SKIPPED
        self.results = {"writeResult": tried, "readResult": _PASSED, "listResult": _PASSED, "deleteResult": tried}
        self.results["awsRoleArnValidationResult"] = _PASSED

    def look(self) -> None:
        try:
            access = of_location(self._account, self._location)
        except AwsRefused as error:
            self.results |= dict.fromkeys(self.results, _SKIPPED)
            self.results["awsRoleArnValidationResult"] = f"FAILED with exception message Error assuming AWS_ROLE:\n{error}"
            self.region = None
            return
        s3, bucket, prefix = access.client("s3"), self._location.bucket, self._location.prefix
        key = f"{prefix.rstrip('/')}/{_PROBE}".lstrip("/")
        self._try("listResult", s3.get_bucket_location, Bucket=bucket)
        self._try("listResult", s3.list_objects_v2, Bucket=bucket, Prefix=prefix, MaxKeys=1)
        if self._writes:
            self._try("writeResult", s3.put_object, Bucket=bucket, Key=key, Body=b"")
        self._try("readResult", s3.get_object, Bucket=bucket, Key=key)
        if self._writes:
            self._try("deleteResult", s3.delete_object, Bucket=bucket, Key=key)

    def _try(self, result: str, call: Any, **given: Any) -> None:
        """Whoever may read, may be told that there is nothing to read."""
        try:
            refused(call, **given)
        except AwsRefused as error:
            if error.code != "NoSuchKey" and self.results[result] == _PASSED:
                self.results[result] = f"FAILED with exception message {error}"


def verify_integration(account: Account, integration: Integration) -> dict[str, Any]:
    """Whether the endpoint answers, and lists namespaces. It doesn't prove that tables can be read."""
    try:
        if account.lake:
            namespaces(account, integration)
    except AwsRefused as error:
        return {"success": False, "errorCode": "004155", "errorMessage": failed_access(integration, error)}
    return {"success": True, "errorCode": "", "errorMessage": ""}


def failed_access(integration: Integration, error: AwsRefused) -> str:
    what = f"Failed to access the REST endpoint of catalog integration {integration.label} with error"
    return f"SQL Execution Error: {what}: {error}. Check the accessibility of the REST catalog URI."


def namespaces(account: Account, integration: Integration) -> list[str]:
    """Raises AwsRefused."""
    access = of_integration(account, integration)
    access.iceberg_config(integration.catalog_name)
    pages = access.client("glue").get_paginator("get_databases")
    found = refused(lambda: list(pages.paginate()))
    return [each["Name"] for page in found for each in page["DatabaseList"]]


def iceberg_tables(account: Account, integration: Integration, namespace: str) -> list[str]:
    """Raises AwsRefused."""
    pages = of_integration(account, integration).client("glue").get_paginator("get_tables")
    found = refused(lambda: list(pages.paginate(DatabaseName=namespace)))
    return [
        each["Name"]
        for page in found
        for each in page["TableList"]
        if str(each.get("Parameters", {}).get("table_type", "")).upper() == "ICEBERG"
    ]


def metadata_location(account: Account, integration: Integration, namespace: str, table: str) -> str:
    """Where the catalog says that the table is described now. Raises AwsRefused."""
    access = of_integration(account, integration)
    access.iceberg_config(integration.catalog_name)
    refused(access.client("glue").get_database, Name=namespace)
    found = refused(access.client("glue").get_table, DatabaseName=namespace, Name=table)["Table"]
    location = str(found.get("Parameters", {}).get("metadata_location", ""))
    if not re.fullmatch(r"s3://[^/]+/.+", location):
        raise AwsRefused(f"{namespace}.{table} is not an Iceberg table", "NotIceberg")
    return location
