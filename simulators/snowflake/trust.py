"""Snowflake's access to AWS: it assumes the customer's IAM roles, verifies their permissions, and lists
Glue's contents.
"""

from __future__ import annotations

import re
from typing import Any, Final

from simulators.core.aws_access import Access, AwsRefused, call_aws
from simulators.snowflake.account import Account
from simulators.snowflake.lake import call_iceberg_config
from simulators.snowflake.model import Integration, Location, Volume

#: The id of Snowflake's AWS account if no embedded AWS is attached.
_NO_ACCOUNT: Final = "000000000000"
_PASSED: Final = "PASSED"
_SKIPPED: Final = "SKIPPED"
#: The key of an object that doesn't exist. The error of reading it shows whether reading is allowed.
_PROBE: Final = "snowflake-read-probe"


def get_user_arn(account: Account) -> str:
    name = _name_user(account)
    if account.lake:
        return account.lake.create_vendor_user(name)
    return f"arn:aws:iam::{_NO_ACCOUNT}:user/vendor/{name}"


def forget(account: Account) -> None:
    """Delete Snowflake's IAM user."""
    if account.lake:
        account.lake.forget_vendor_user(_name_user(account))


def _name_user(account: Account) -> str:
    return f"{account.name.lower().replace('_', '-')}-s"


def create_external_id(account: Account) -> str:
    """Return a new external id in Snowflake's format."""
    return f"{account.name}_SFCRole=2_{account.create_random_text(26)}="


def assume_for_location(account: Account, location: Location) -> Access:
    """Return a session of the location's role. Raises AwsRefused if the role can't be assumed."""
    assert account.lake is not None, "callers check it"
    return account.lake.assume(_name_user(account), location.role_arn, location.external_id)


def assume_for_integration(account: Account, integration: Integration) -> Access:
    """Return a session of the integration's role.

    Raises AwsRefused if the role can't be assumed, the endpoint isn't in the signing region, or CATALOG_NAME
    isn't the account.
    """
    assert account.lake is not None, "callers check it"
    if f".{integration.signing_region}." not in integration.catalog_uri:
        raise AwsRefused(
            f"Credential should be scoped to a valid region, not '{integration.signing_region}' "
            f"for {integration.catalog_uri}. (Error Code: InvalidSignatureException)",
            "403",
        )
    access = account.lake.assume(
        _name_user(account), integration.role_arn, integration.external_id, integration.signing_region
    )
    if integration.catalog_name != account.lake.account:
        resource = f"arn:aws:glue:{integration.signing_region}:{integration.catalog_name}:catalog"
        raise AwsRefused(f"not authorized to perform: glue:GetCatalog on resource: {resource}", "403")
    return access


def verify_volume(account: Account, volume: Volume) -> dict[str, Any]:
    """Return the result of SYSTEM$VERIFY_EXTERNAL_VOLUME. Without a lake, all checks pass."""
    location = volume.locations[0]
    write_result = _PASSED if volume.allow_writes else _SKIPPED
    results = {
        "writeResult": write_result,
        "readResult": _PASSED,
        "listResult": _PASSED,
        "deleteResult": write_result,
    }
    results["awsRoleArnValidationResult"] = _PASSED
    region = None
    if account.lake:
        try:
            access = assume_for_location(account, location)
        except AwsRefused as error:
            results |= dict.fromkeys(results, _SKIPPED)
            results["awsRoleArnValidationResult"] = (
                f"FAILED with exception message Error assuming AWS_ROLE:\n{error}"
            )
        else:
            region = account.lake.root.region
            results |= _try_location(access, location, writes=volume.allow_writes)
    failures = [result for result in results.values() if result not in (_PASSED, _SKIPPED)]
    identity = (
        f"STORAGE_AWS_IAM_USER_ARN: {get_user_arn(account)}; STORAGE_AWS_EXTERNAL_ID: {location.external_id}"
    )
    return {
        "success": not failures,
        "storageLocationSelectionResult": failures[0] if failures else _PASSED,
        "storageLocationName": location.label,
        "servicePrincipalProperties": identity,
        "location": location.base_url,
        "storageAccount": None,
        "region": region,
        **results,
        "azureGetUserDelegationKeyResult": _SKIPPED,
    }


def _try_location(access: Access, location: Location, *, writes: bool) -> dict[str, str]:
    """Return the failed checks, each with its first error."""
    failures: dict[str, str] = {}

    def attempt(result: str, call: Any, **arguments: Any) -> None:
        try:
            call_aws(call, **arguments)
        except AwsRefused as error:
            if error.code != "NoSuchKey":  # a role that may not read or list gets AccessDenied
                failures.setdefault(result, f"FAILED with exception message {error}")

    s3 = access.client("s3")
    bucket = location.bucket
    prefix = location.prefix
    key = f"{prefix.rstrip('/')}/{_PROBE}".lstrip("/")
    attempt("listResult", s3.get_bucket_location, Bucket=bucket)
    attempt("listResult", s3.list_objects_v2, Bucket=bucket, Prefix=prefix, MaxKeys=1)
    if writes:
        attempt("writeResult", s3.put_object, Bucket=bucket, Key=key, Body=b"")
    attempt("readResult", s3.get_object, Bucket=bucket, Key=key)
    if writes:
        attempt("deleteResult", s3.delete_object, Bucket=bucket, Key=key)
    return failures


def verify_integration(account: Account, integration: Integration) -> dict[str, Any]:
    """Return the result of SYSTEM$VERIFY_CATALOG_INTEGRATION.

    It checks listing namespaces, not reading tables.
    """
    try:
        if account.lake:
            list_namespaces(account, integration)
    except AwsRefused as error:
        return {
            "success": False,
            "errorCode": "004155",
            "errorMessage": describe_failed_access(integration, error),
        }
    return {"success": True, "errorCode": "", "errorMessage": ""}


def describe_failed_access(integration: Integration, error: AwsRefused) -> str:
    failure = f"Failed to access the REST endpoint of catalog integration {integration.label} with error"
    return f"SQL Execution Error: {failure}: {error}. Check the accessibility of the REST catalog URI."


def list_namespaces(account: Account, integration: Integration) -> list[str]:
    """Return the names of Glue's databases. Raises AwsRefused if the role may not list them."""
    access = assume_for_integration(account, integration)
    call_iceberg_config(access, integration.catalog_name)
    paginator = access.client("glue").get_paginator("get_databases")
    pages = call_aws(lambda: list(paginator.paginate()))
    names: list[str] = []
    for page in pages:
        names += [database["Name"] for database in page["DatabaseList"]]
    return names


def list_iceberg_tables(account: Account, integration: Integration, namespace: str) -> list[str]:
    """Return the names of the Iceberg tables in a Glue database.

    Raises AwsRefused if the role may not list them.
    """
    paginator = assume_for_integration(account, integration).client("glue").get_paginator("get_tables")
    pages = call_aws(lambda: list(paginator.paginate(DatabaseName=namespace)))
    names = []
    for page in pages:
        for table in page["TableList"]:
            table_type = str(table.get("Parameters", {}).get("table_type", ""))
            if table_type.upper() == "ICEBERG":
                names.append(table["Name"])
    return names


def find_metadata_location(account: Account, integration: Integration, namespace: str, table: str) -> str:
    """Return the location of the table's current metadata file, from Glue. Raises AwsRefused."""
    access = assume_for_integration(account, integration)
    call_iceberg_config(access, integration.catalog_name)
    glue = access.client("glue")
    call_aws(glue.get_database, Name=namespace)
    description = call_aws(glue.get_table, DatabaseName=namespace, Name=table)["Table"]
    location = str(description.get("Parameters", {}).get("metadata_location", ""))
    if not re.fullmatch(r"s3://[^/]+/.+", location):
        raise AwsRefused(f"{namespace}.{table} is not an Iceberg table", "NotIceberg")
    return location
