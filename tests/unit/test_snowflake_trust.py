"""The handshake with AWS: our own external ids, no change that breaks the trust, and messages that say which side is wrong."""

from __future__ import annotations

import json

import pytest
from snowflake_context import (
    EXTERNAL_ID,
    IAM_USER,
    MARK,
    MISSING,
    ORIGIN,
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
    written,
)

from lambdas.custom_resources import request
from lambdas.shared.errors import BadProperties, Conflict, NotFound, Refused, ReplacementRequired, ResourceFailed, Transient
from lambdas.snowflake.resources import catalog_integration, external_volume, trust

URL = "s3://lake-bucket/tableflow/v1/"
VOLUME = {"base_url": URL, "role_arn": ROLE_ARN}
INTEGRATION = {"role_arn": ROLE_ARN, "region": "eu-west-1", "account_id": "111122223333", "namespace": "lkc-1"}
OTHER_USER = "arn:aws:iam::999988887777:user/other"
NOT_ALLOWED = f"User: {IAM_USER} is not authorized to perform: sts:AssumeRole on resource: {ROLE_ARN} (Status Code: 403)"


def location(**given):
    place = {
        "NAME": OWN,
        "STORAGE_PROVIDER": "S3",
        "STORAGE_BASE_URL": URL,
        "STORAGE_ALLOWED_LOCATIONS": [URL + "*"],
        "STORAGE_AWS_ROLE_ARN": ROLE_ARN,
        "STORAGE_AWS_IAM_USER_ARN": IAM_USER,
        "STORAGE_AWS_EXTERNAL_ID": EXTERNAL_ID,
        "STORAGE_REGION": "eu-west-1",
    }
    return {**place, **given}


def volume_rows(*locations, writes="false"):
    rows = [{"parent_property": "", "property": "ALLOW_WRITES", "property_value": writes}]
    for number, one in enumerate(locations or [location()], 1):
        text = one if isinstance(one, str) else json.dumps(one)
        rows.append({"parent_property": "STORAGE_LOCATIONS", "property": f"STORAGE_LOCATION_{number}", "property_value": text})
    return result(*rows, {"parent_property": "STORAGE_LOCATIONS", "property": "ACTIVE", "property_value": OWN})


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
        "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION": value({"success": True, "errorCode": "", "errorMessage": ""}),
        "SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG": value(["default", "lkc-1"]),
    }
    return script(server, **{**usual, **answers})


def test_a_volume_is_for_reading_with_our_own_external_id(server):
    assert external_volume.create(context(script(server)), spec(external_volume, **VOLUME)) == OWN
    assert written(server) == [
        f"CREATE EXTERNAL VOLUME \"{OWN}\" STORAGE_LOCATIONS=((NAME='{OWN}' STORAGE_PROVIDER='S3' STORAGE_BASE_URL='{URL}' "
        f"STORAGE_AWS_ROLE_ARN='{ROLE_ARN}' STORAGE_AWS_EXTERNAL_ID='{EXTERNAL_ID}')) ALLOW_WRITES=FALSE COMMENT='{MARK}'"
    ]


def test_an_integration_goes_to_glue_s_iceberg_endpoint_with_our_own_external_id(server):
    assert catalog_integration.create(context(script(server)), spec(catalog_integration, **INTEGRATION)) == OWN
    assert written(server) == [
        f"CREATE CATALOG INTEGRATION \"{OWN}\" CATALOG_SOURCE=ICEBERG_REST TABLE_FORMAT=ICEBERG CATALOG_NAMESPACE='lkc-1' "
        "REST_CONFIG=(CATALOG_URI='https://glue.eu-west-1.amazonaws.com/iceberg' CATALOG_API_TYPE=AWS_GLUE "
        "CATALOG_NAME='111122223333' ACCESS_DELEGATION_MODE=EXTERNAL_VOLUME_CREDENTIALS) "
        f"REST_AUTHENTICATION=(TYPE=SIGV4 SIGV4_IAM_ROLE='{ROLE_ARN}' SIGV4_SIGNING_REGION='eu-west-1' "
        f"SIGV4_EXTERNAL_ID='{EXTERNAL_ID}') ENABLED=TRUE REFRESH_INTERVAL_SECONDS=60 COMMENT='{MARK}'"
    ]


WANTED = {"name": OWN, "iam_user_arn": IAM_USER, "external_id": EXTERNAL_ID}


def test_both_give_what_the_role_s_trust_must_name(server):
    held = context(there(server))
    assert external_volume.is_ready(held, spec(external_volume, **VOLUME), OWN) == WANTED
    assert catalog_integration.is_ready(held, spec(catalog_integration, **INTEGRATION), OWN) == WANTED
    assert not [statement for statement in sent(server) if "VERIFY" in statement], "the role isn't there yet"


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
    "rows", [volume_rows("no json"), volume_rows(location(STORAGE_AWS_IAM_USER_ARN=None)), result(columns=("property",))]
)
def test_a_description_without_the_values_is_not_ready(server, rows):
    with pytest.raises(Transient):
        external_volume.is_ready(context(there(server, **{"DESC EXTERNAL VOLUME": rows})), spec(external_volume, **VOLUME), OWN)


def test_external_ids_differ_between_stacks_and_resources_and_outlive_a_replacement():
    stacks = [f"arn:aws:cloudformation:eu-west-1:111122223333:stack/lake/{number}" for number in (1, 2)]
    origins = {request.resource_uid(stack, name) for stack in stacks for name in ("Volume", "Integration")}
    assert len(origins) == 4
    assert {len(one) for one in origins} == {len(ORIGIN)}


def test_a_hundred_updates_neither_make_nor_change_anything(server):
    """The external id that the role trusts stays what it is."""
    held = context(there(server))
    for _ in range(100):
        for kind, given in ((external_volume, VOLUME), (catalog_integration, INTEGRATION)):
            assert kind.find_existing(held, spec(kind, **given), None) == [OWN]
            kind.update(held, spec(kind, **given), OWN)
            assert kind.is_ready(held, spec(kind, **given), OWN)["external_id"] == EXTERNAL_ID
    assert written(server) == []


@pytest.mark.parametrize(
    "changed", [{"STORAGE_BASE_URL": "s3://other/"}, {"STORAGE_AWS_ROLE_ARN": "arn:x"}, {"STORAGE_AWS_EXTERNAL_ID": "x"}]
)
def test_a_volume_that_leads_elsewhere_is_created_again_not_replaced_in_place(server, changed):
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


def test_an_integration_s_interval_is_altered_and_the_rest_created_again(server):
    catalog_integration.update(context(there(server)), spec(catalog_integration, **INTEGRATION, refresh_seconds="30"), OWN)
    assert written(server) == [f'ALTER CATALOG INTEGRATION "{OWN}" SET REFRESH_INTERVAL_SECONDS=30']
    for changed in ({"API_AWS_EXTERNAL_ID": "another"}, {"CATALOG_NAMESPACE": "another"}):
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
def test_what_tables_still_read_through_is_not_dropped(server, kind, given, column, drop):
    table = {"database_name": "SALES", "schema_name": "PUBLIC", "name": "T", "external_volume_name": "X", "catalog_name": "X"}
    there(server, **{"SHOW ICEBERG TABLES": [result({**table, column: OWN}), result(table)]})
    deleting = context(server, deleting=True)
    with pytest.raises(Conflict, match=f"{OWN} is used by SALES.PUBLIC.T"):
        kind.delete(deleting, spec(kind, **given), OWN)
    kind.delete(deleting, spec(kind, **given), OWN)
    assert written(server) == [drop]


@pytest.mark.parametrize(
    "url", ["s3://bucket.with.dots/", "s3://bucket", "https://bucket/", "s3://Bucket/", "s3://b/x", "s3://bucket/a'b/", ""]
)
def test_a_place_that_snowflake_can_t_read_is_refused(url):
    with pytest.raises(BadProperties, match="base_url"):
        spec(external_volume, **{**VOLUME, "base_url": url})


@pytest.mark.parametrize(
    ("given", "expected_message"),
    [
        ({"source": "glue"}, "accepts no chosen external id"),
        ({"source": "tableflow"}, "API key in the statement"),
        ({"source": "other"}, "is not glue_iceberg_rest"),
        ({"region": "eu"}, "is not a region"),
        ({"account_id": "1234"}, "is not an AWS account id"),
        ({"refresh_seconds": "5"}, "must be 30 to 86400"),
        ({"role_arn": "arn:aws:iam::1:role/x"}, "not the ARN of an IAM role"),
    ],
)
def test_another_way_to_the_catalog_is_refused_with_the_reason(given, expected_message):
    with pytest.raises(BadProperties, match=expected_message):
        spec(catalog_integration, **{**INTEGRATION, **given})


def proof(**given):
    return spec(trust, volume="V", integration="C", **given)


TRUSTED = {
    "volume_principal": IAM_USER,
    "volume_external_id": EXTERNAL_ID,
    "integration_principal": IAM_USER,
    "integration_external_id": EXTERNAL_ID,
}


def test_the_proof_is_given_once_snowflake_is_let_in(server):
    assert trust.is_ready(context(there(server)), proof(namespace="lkc-1", **TRUSTED), "V/C") == {
        "volume": "V",
        "integration": "C",
    }
    assert written(server) == []
    assert sent(server) == [
        'DESC EXTERNAL VOLUME "V"',
        'DESC CATALOG INTEGRATION "C"',
        "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('V') AS RESULT",
        "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION('C') AS RESULT",
        "SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG('C') AS RESULT",
    ]


def test_the_proof_makes_nothing_and_leaves_nothing(server):
    held = context(there(server))
    assert trust.create(held, proof()) == "V/C"
    assert trust.find_existing(held, proof(), None) == ["V/C"]
    trust.update(held, proof(), "V/C")
    deleting = context(server, deleting=True)
    trust.delete(deleting, proof(), "V/C")
    assert trust.find_existing(deleting, proof(), "V/C") == []
    assert sent(server) == []


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


@pytest.mark.parametrize(
    ("given", "code", "expected_message"),
    [
        ({"volume_principal": OTHER_USER}, "SNF-TRUST-PRINCIPAL", [OTHER_USER, IAM_USER, "external volume V"]),
        ({"volume_external_id": "old-id"}, "SNF-TRUST-EXTERNAL-ID", ["old-id", EXTERNAL_ID, "external volume V"]),
        ({"integration_principal": OTHER_USER}, "SNF-TRUST-PRINCIPAL", [OTHER_USER, IAM_USER, "catalog integration C"]),
        ({"integration_external_id": "old-id"}, "SNF-TRUST-EXTERNAL-ID", ["old-id", EXTERNAL_ID, "catalog integration C"]),
    ],
)
def test_a_role_that_trusts_other_values_is_reported_at_once_with_both(server, given, code, expected_message):
    with pytest.raises(Refused) as refused:
        trust.is_ready(context(there(server)), proof(**{**TRUSTED, **given}), "V/C")
    assert refused.value.row.code == code
    assert refused.value.patience == 0
    assert all(one in refused.value.what for one in expected_message)


VERIFY_VOLUME = "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME"
VERIFY_INTEGRATION = "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION"
LIST = "SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG"
NO_S3 = "FAILED with exception message User: x is not authorized to perform: s3:GetObject on resource: arn:aws:s3:::lake-bucket/x"
NO_GLUE = "not authorized to perform: glue:GetDatabases"
WRONG_REGION = "Credential should be scoped to a valid region"
NO_DATABASE = "EntityNotFoundException: Database lkc-1"


@pytest.mark.parametrize(
    ("function", "answer", "code"),
    [
        (VERIFY_VOLUME, value({"success": False, "awsRoleArnValidationResult": f"FAILED {NOT_ALLOWED}"}), "SNF-TRUST-ROLE"),
        (VERIFY_VOLUME, value({"success": False, "awsRoleArnValidationResult": "FAILED"}), "SNF-TRUST-ROLE"),
        (
            VERIFY_VOLUME,
            value({"success": False, "readResult": NO_S3, "awsRoleArnValidationResult": "PASSED"}),
            "SNF-TRUST-STORAGE",
        ),
        (VERIFY_VOLUME, value({"success": False, "storageLocationSelectionResult": "FAILED"}), "SNF-TRUST-REGION"),
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
def test_each_thing_that_can_be_wrong_has_its_own_message_and_is_waited_for(server, function, answer, code):
    there(server, **{function: answer})
    with pytest.raises(ResourceFailed) as faulty:
        trust.is_ready(context(server), proof(namespace="lkc-1", **TRUSTED), "V/C")
    assert faulty.value.row.code == code
    assert faulty.value.patience >= 600
    side = (
        "external volume V (s3://lake-bucket/tableflow/v1/)"
        if function == VERIFY_VOLUME
        else "catalog integration C (https://glue"
    )
    assert side in faulty.value.what
    if function != LIST:
        assert all(one in faulty.value.what for one in (ROLE_ARN, IAM_USER, EXTERNAL_ID))


def test_a_volume_that_is_gone_is_no_matter_of_trust(server):
    there(server, **{"DESC EXTERNAL VOLUME": MISSING})
    with pytest.raises(NotFound):
        trust.is_ready(context(server), proof(), "V/C")
    there(server, **{VERIFY_VOLUME: MISSING})
    with pytest.raises(NotFound):
        trust.is_ready(context(server), proof(), "V/C")
