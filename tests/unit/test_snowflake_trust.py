"""The handshake with AWS: our own external ids, no change that breaks the trust, and errors that name the
wrong side.
"""

from __future__ import annotations

import json

import pytest

from lambdas.shared.errors import (
    BadProperties,
    Conflict,
    NotFound,
    Refused,
    ReplacementRequired,
    ResourceFailed,
    TimedOut,
    Transient,
)
from lambdas.snowflake.resources import catalog_integration, external_volume, trust
from tests.support.resource_environment import (
    NO_PRINCIPALS,
    Invocations,
    ManualClock,
    MemorySecrets,
    Resource,
)
from tests.support.snowflake_context import (
    EXTERNAL_ID,
    IAM_USER,
    MISSING,
    OWN,
    ROLE_ARN,
    context,
    failure,
    result,
    row,
    script,
    sent,
    spec,
    value,
    vendor,
    written,
)

URL = "s3://lake-bucket/tableflow/v1/"
VOLUME = {"base_url": URL, "role_arn": ROLE_ARN}
INTEGRATION = {
    "role_arn": ROLE_ARN,
    "region": "eu-west-1",
    "account_id": "111122223333",
    "namespace": "lkc-1",
}
NOT_ALLOWED = (
    f"User: {IAM_USER} is not authorized to perform: sts:AssumeRole on resource: {ROLE_ARN} (Status Code: "
    "403)"
)


def location(**given):
    location = {
        "NAME": OWN,
        "STORAGE_PROVIDER": "S3",
        "STORAGE_BASE_URL": URL,
        "STORAGE_ALLOWED_LOCATIONS": [URL + "*"],
        "STORAGE_AWS_ROLE_ARN": ROLE_ARN,
        "STORAGE_AWS_IAM_USER_ARN": IAM_USER,
        "STORAGE_AWS_EXTERNAL_ID": EXTERNAL_ID,
        "STORAGE_REGION": "eu-west-1",
    }
    return {**location, **given}


def volume_rows(*locations, writes="false"):
    rows = [{"parent_property": "", "property": "ALLOW_WRITES", "property_value": writes}]
    for number, storage_location in enumerate(locations or [location()], 1):
        text = storage_location if isinstance(storage_location, str) else json.dumps(storage_location)
        rows.append(
            {
                "parent_property": "STORAGE_LOCATIONS",
                "property": f"STORAGE_LOCATION_{number}",
                "property_value": text,
            }
        )
    return result(
        *rows, {"parent_property": "STORAGE_LOCATIONS", "property": "ACTIVE", "property_value": OWN}
    )


def integration_rows(prefix="API_AWS_", **given):
    every = {
        "ENABLED": "true",
        "CATALOG_SOURCE": "ICEBERG_REST",
        "CATALOG_NAMESPACE": "lkc-1",
        "REFRESH_INTERVAL_SECONDS": "60",
        "REST_CONFIG": '{"CATALOG_URI":"https://glue.eu-west-1.amazonaws.com/iceberg","CATALOG_NAME":"111122223333"}',
        "REST_AUTHENTICATION": json.dumps({"TYPE": "SIGV4", "SIGV4_IAM_ROLE": ROLE_ARN}),
        f"{prefix}IAM_USER_ARN": IAM_USER,
        f"{prefix}EXTERNAL_ID": EXTERNAL_ID,
        **given,
    }
    return result(*({"property": name, "property_value": text} for name, text in every.items()))


def there(server, **answers):
    usual = {
        "SHOW EXTERNAL VOLUMES": result(row()),
        "SHOW CATALOG INTEGRATIONS": result(row()),
        "DESC EXTERNAL VOLUME": volume_rows(),
        "DESC CATALOG INTEGRATION": integration_rows(),
        "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME": value(
            {"success": True, "awsRoleArnValidationResult": "PASSED", "readResult": "SKIPPED"}
        ),
        "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION": value(
            {"success": True, "errorCode": "", "errorMessage": ""}
        ),
        "SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG": value(["default", "lkc-1"]),
    }
    return script(server, **{**usual, **answers})


WANTED = {"name": OWN, "iam_user_arn": IAM_USER, "external_id": EXTERNAL_ID}


@pytest.mark.parametrize("prefix", ["API_AWS_", "GLUE_AWS_"])
def test_either_of_the_vendor_s_names_is_read(server, prefix):
    held = context(there(server, **{"DESC CATALOG INTEGRATION": integration_rows(prefix)}))
    assert catalog_integration.is_ready(held, spec(catalog_integration, **INTEGRATION), OWN) == WANTED


def test_an_external_id_that_isn_t_reported_is_still_ours(server):
    held = context(there(server, **{"DESC CATALOG INTEGRATION": integration_rows(API_AWS_EXTERNAL_ID="")}))
    assert catalog_integration.is_ready(held, spec(catalog_integration, **INTEGRATION), OWN) == WANTED
    catalog_integration.update(held, spec(catalog_integration, **INTEGRATION), OWN)
    assert written(server) == []


@pytest.mark.parametrize(
    "rows",
    [
        volume_rows("no json"),
        volume_rows(location(STORAGE_AWS_IAM_USER_ARN=None)),
        result(columns=("property",)),
    ],
)
def test_a_description_without_the_values_is_not_ready(server, rows):
    with pytest.raises(Transient):
        external_volume.is_ready(
            context(there(server, **{"DESC EXTERNAL VOLUME": rows})), spec(external_volume, **VOLUME), OWN
        )


@pytest.mark.parametrize("arn", NO_PRINCIPALS)
def test_a_principal_that_is_not_one_role_or_user_gets_into_no_trust_policy(server, arn):
    volume = volume_rows(location(STORAGE_AWS_IAM_USER_ARN=arn))
    integration = integration_rows(API_AWS_IAM_USER_ARN=arn)
    ctx = context(there(server, **{"DESC EXTERNAL VOLUME": volume, "DESC CATALOG INTEGRATION": integration}))
    for module, properties in ((external_volume, VOLUME), (catalog_integration, INTEGRATION)):
        with pytest.raises(Refused) as raised:
            module.is_ready(ctx, spec(module, **properties), OWN)
        assert raised.value.kind.code == "LF-PRINCIPAL"


@pytest.mark.parametrize(
    "changed",
    [
        {"STORAGE_BASE_URL": "s3://other/"},
        {"STORAGE_AWS_ROLE_ARN": "arn:x"},
        {"STORAGE_AWS_EXTERNAL_ID": "x"},
    ],
)
def test_a_volume_with_another_location_is_created_again_not_replaced(server, changed):
    there(server, **{"DESC EXTERNAL VOLUME": volume_rows(location(**changed))})
    with pytest.raises(ReplacementRequired):
        external_volume.update(context(server), spec(external_volume, **VOLUME), OWN)
    there(server, **{"DESC EXTERNAL VOLUME": volume_rows(location(), location(NAME="another"))})
    with pytest.raises(ReplacementRequired):
        external_volume.update(context(server), spec(external_volume, **VOLUME), OWN)
    assert written(server) == []


def test_a_volume_that_somebody_opened_for_writing_is_closed(server):
    there(server, **{"DESC EXTERNAL VOLUME": volume_rows(writes="TRUE")})
    external_volume.update(context(server), spec(external_volume, **VOLUME), OWN)
    assert written(server) == [f'ALTER EXTERNAL VOLUME "{OWN}" SET ALLOW_WRITES=FALSE']


@pytest.mark.parametrize("changed", [{"API_AWS_EXTERNAL_ID": "another"}, {"CATALOG_NAMESPACE": "another"}])
def test_an_integration_with_other_values_is_created_again(server, changed):
    there(server, **{"DESC CATALOG INTEGRATION": integration_rows(**changed)})
    with pytest.raises(ReplacementRequired):
        catalog_integration.update(context(server), spec(catalog_integration, **INTEGRATION), OWN)


@pytest.mark.parametrize(
    ("kind", "given", "column", "drop"),
    [
        (external_volume, VOLUME, "external_volume_name", f'DROP EXTERNAL VOLUME IF EXISTS "{OWN}"'),
        (catalog_integration, INTEGRATION, "catalog_name", f'DROP CATALOG INTEGRATION IF EXISTS "{OWN}"'),
    ],
)
def test_an_object_that_tables_still_use_is_not_dropped(server, kind, given, column, drop):
    table = {
        "database_name": "SALES",
        "schema_name": "PUBLIC",
        "name": "T",
        "external_volume_name": "X",
        "catalog_name": "X",
    }
    there(server, **{"SHOW ICEBERG TABLES": [result({**table, column: OWN}), result(table)]})
    deleting = context(server, deleting=True)
    with pytest.raises(Conflict, match=f"{OWN} is used by SALES.PUBLIC.T"):
        kind.delete(deleting, spec(kind, **given), OWN)
    kind.delete(deleting, spec(kind, **given), OWN)
    assert written(server) == [drop]


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket.with.dots/",
        "s3://bucket",
        "https://bucket/",
        "s3://Bucket/",
        "s3://b/x",
        "s3://bucket/a'b/",
        "",
    ],
)
def test_a_location_that_snowflake_cannot_read_is_refused(url):
    with pytest.raises(BadProperties, match="base_url"):
        spec(external_volume, **{**VOLUME, "base_url": url})


@pytest.mark.parametrize(
    ("given", "expected_message"),
    [
        ({"region": "eu"}, "is not a region"),
        ({"account_id": "1234"}, "is not an AWS account id"),
        ({"refresh_seconds": "5"}, "must be 30 to 86400"),
        ({"role_arn": "arn:aws:iam::1:role/x"}, "not the ARN of an IAM role"),
    ],
)
def test_a_catalog_that_can_not_exist_is_refused_with_the_reason(given, expected_message):
    with pytest.raises(BadProperties, match=expected_message):
        spec(catalog_integration, **{**INTEGRATION, **given})


def proof(**given):
    return spec(trust, volume="V", integration="C", **given)


def test_a_check_of_a_read_only_volume_that_could_not_read_passes(server):
    result = {
        "success": True,
        "awsRoleArnValidationResult": "PASSED",
        "readResult": "UNVERIFIED",
        "writeResult": "SKIPPED",
        "storageAccount": None,
    }
    there(server, **{"SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME": value(result)})
    assert trust.is_ready(context(server), proof(), "V/C")


VERIFY_VOLUME = "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME"
VERIFY_INTEGRATION = "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION"
LIST = "SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG"
NO_S3 = (
    "FAILED with exception message User: x is not authorized to perform: s3:GetObject on resource: "
    "arn:aws:s3:::lake-bucket/x"
)
NO_GLUE = "not authorized to perform: glue:GetDatabases"
WRONG_REGION = "Credential should be scoped to a valid region"
NO_DATABASE = "EntityNotFoundException: Database lkc-1"


@pytest.mark.parametrize(
    ("function", "answer", "code"),
    [
        (
            VERIFY_VOLUME,
            value({"success": False, "awsRoleArnValidationResult": f"FAILED {NOT_ALLOWED}"}),
            "SNF-TRUST-ROLE",
        ),
        (VERIFY_VOLUME, value({"success": False, "awsRoleArnValidationResult": "FAILED"}), "SNF-TRUST-ROLE"),
        (
            VERIFY_VOLUME,
            value({"success": False, "readResult": NO_S3, "awsRoleArnValidationResult": "PASSED"}),
            "SNF-TRUST-STORAGE",
        ),
        (
            VERIFY_VOLUME,
            value({"success": False, "storageLocationSelectionResult": "FAILED"}),
            "SNF-TRUST-REGION",
        ),
        (
            VERIFY_VOLUME,
            value({"success": False, "storageLocationSelectionResult": NO_S3, "readResult": NO_S3}),
            "SNF-TRUST-STORAGE",
        ),
        (VERIFY_VOLUME, failure("099999", f"Error assuming role: {NOT_ALLOWED}"), "SNF-TRUST-ROLE"),
        (VERIFY_VOLUME, value({"success": False}), "SNF-TRUST-STORAGE"),
        (VERIFY_VOLUME, value("no json"), "SNF-TRUST-STORAGE"),
        (VERIFY_INTEGRATION, value({"errorCode": "004155", "errorMessage": NOT_ALLOWED}), "SNF-TRUST-ROLE"),
        (VERIFY_INTEGRATION, value({"errorCode": "1", "errorMessage": NO_GLUE}), "SNF-TRUST-CATALOG"),
        (VERIFY_INTEGRATION, value({"errorCode": "1", "errorMessage": WRONG_REGION}), "SNF-TRUST-REGION"),
        (VERIFY_INTEGRATION, value({"errorCode": "1", "errorMessage": NO_DATABASE}), "SNF-TRUST-NAMESPACE"),
        (VERIFY_INTEGRATION, value({"success": False, "errorCode": ""}), "SNF-TRUST-CATALOG"),
        (VERIFY_INTEGRATION, failure("099999", NOT_ALLOWED), "SNF-TRUST-ROLE"),
        (LIST, value(["default", "other"]), "SNF-TRUST-NAMESPACE"),
        (LIST, value([]), "SNF-TRUST-REGION"),
        (LIST, failure("099999", "Forbidden: glue:GetDatabases"), "SNF-TRUST-CATALOG"),
    ],
)
def test_each_mistake_has_its_own_message_and_is_waited_for(server, function, answer, code):
    there(server, **{function: answer})
    with pytest.raises(ResourceFailed) as faulty:
        trust.is_ready(context(server), proof(namespace="lkc-1"), "V/C")
    assert faulty.value.kind.code == code
    assert faulty.value.patience >= 600
    side = (
        "external volume V (s3://lake-bucket/tableflow/v1/)"
        if function == VERIFY_VOLUME
        else "catalog integration C (https://glue"
    )
    assert side in faulty.value.what
    if function != LIST:
        assert all(identifier in faulty.value.what for identifier in (ROLE_ARN, IAM_USER, EXTERNAL_ID))


def test_the_namespaces_are_those_of_the_catalogs_root(server):
    """Without a parent, Snowflake lists what is in the integration's own namespace: nothing, for Glue."""
    there(server)
    assert trust.is_ready(context(server), proof(namespace="lkc-1"), "V/C")
    assert sent(server)[-1] == f"{LIST}('C', '', 1) AS RESULT"


def test_a_missing_volume_is_not_reported_as_an_error_of_trust(server):
    there(server, **{"DESC EXTERNAL VOLUME": MISSING})
    with pytest.raises(NotFound):
        trust.is_ready(context(server), proof(), "V/C")
    there(server, **{VERIFY_VOLUME: MISSING})
    with pytest.raises(NotFound):
        trust.is_ready(context(server), proof(), "V/C")


@pytest.fixture
def invocations(server):
    """Return the function's invocations, with a scripted SQL API."""
    return Invocations(lambda deadline, clock, store: vendor(server, clock), ManualClock(), MemorySecrets())


def test_a_new_role_is_waited_for_ten_minutes(server, invocations):
    refusal = {"success": False, "awsRoleArnValidationResult": f"FAILED {NOT_ALLOWED}"}
    script(server, **{"DESC": result(columns=("property",)), VERIFY_VOLUME: value(refusal)})
    started_at = invocations.clock.now
    with pytest.raises(TimedOut, match="SNF-TRUST-ROLE"):
        Resource(invocations, "snowflake_trust", "Proof", volume="V", integration="C").create()
    assert 600 <= invocations.clock.now - started_at < 660


def test_an_object_that_exists_and_is_not_visible_is_reported_in_the_end(server, invocations):
    script(server, CREATE=failure("002002", "Object 'X' already exists."))
    with pytest.raises(TimedOut, match="SNF-EXISTS"):
        Resource(invocations, "snowflake_role", "Reader").create()
