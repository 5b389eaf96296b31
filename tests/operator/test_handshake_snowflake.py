"""Each way in which Snowflake's handshake with AWS breaks: `doctor` names the one hop to repair, and passes
after the repair.
"""

from __future__ import annotations

import boto3
import pytest

from lakeferry.health import snowflake_to_aws as hops
from lakeferry.health.model import Result
from lambdas.snowflake import keypair
from tests.support import handshake_breaks as breaks
from tests.support.handshake_breaks import FOREIGN, lacks
from tests.support.handshake_environment import all_checks, assert_named, problems_of
from tests.support.waiting import PATIENCE, until

BREAKS = {
    "another external id in the trust of the volume": (
        lambda d: breaks.trust(d, "snowflake", 0, external_id="of-another"), hops.OF_VOLUME,
        ["of-another", "lakeferry-"],
    ),
    "another external id in the trust of the catalog": (
        lambda d: breaks.trust(d, "snowflake", 1, external_id="of-another"), hops.OF_INTEGRATION,
        ["lakeferry-"],
    ),
    "another principal in the trust of the catalog": (
        lambda d: breaks.trust(d, "snowflake", 1, principal=FOREIGN), hops.OF_INTEGRATION, ["lakeferry-"],
    ),
    "Snowflake's role missing": (
        lambda d: breaks.no_role(d, "snowflake"), hops.ROLE, ["-snowflake", "--revert-drift"],
    ),
    **{
        f"Snowflake's role without {action}": (lacks("snowflake", action), hops.POLICY, [action])
        for action in ("s3:ListBucket", "s3:GetObject", "glue:GetCatalog", "glue:GetTable", "glue:GetDatabases")
    },
    "a volume that was made anew": (
        lambda d: breaks.volume(d, external_id="SFCRole=2_made-anew="), hops.VOLUME,
        ["made-anew", "lakeferry-"],
    ),
    "a volume without our role": (
        lambda d: breaks.volume(d, role_arn=""), hops.VOLUME, ["(none)", "-snowflake"],
    ),
    "a volume that leads elsewhere": (
        lambda d: breaks.volume(d, base_url="s3://elsewhere/"), hops.VOLUME, ["s3://elsewhere/"],
    ),
    "a volume that is gone": (
        lambda d: breaks.snowflakes_object_gone(d, "Volume"), hops.VOLUME, ["doesn't exist"],
    ),
    "a catalog of another namespace": (
        lambda d: breaks.snowflakes_catalog(d, namespace="lkc-another"), hops.INTEGRATION, ["lkc-another"],
    ),
    "a catalog of another region": (
        lambda d: breaks.snowflakes_catalog(
            d, catalog_uri="https://glue.us-west-2.amazonaws.com/iceberg", signing_region="us-west-2"
        ), hops.INTEGRATION, ["us-west-2", "eu-west-1"],
    ),
    "a catalog that was switched off": (
        lambda d: breaks.snowflakes_catalog(d, enabled=False), hops.INTEGRATION, ["is enabled false"],
    ),
    "a bucket's policy that keeps Snowflake out": (
        lambda d: breaks.bucket_policy(d, "snowflake"), hops.READS_BUCKET, ["SNF-TRUST-STORAGE"],
    ),
    "another external id in the trust of the aggregates' volume": (
        lambda d: breaks.trust(d, "snowflake", 2, external_id="of-another"),
        "role's trust of the aggregates' volume", ["of-another", "lakeferry-"],
    ),
    "a volume of aggregates that leads elsewhere": (
        lambda d: breaks.volume(d, "AggregatesVolume", base_url="s3://elsewhere/"),
        "external volume of aggregates", ["s3://elsewhere/", "/warehouse/"],
    ),
    "a volume of aggregates that is gone": (
        lambda d: breaks.snowflakes_object_gone(d, "AggregatesVolume"), "external volume of aggregates",
        ["doesn't exist"],
    ),
    "a role that may not read the aggregates": (
        breaks.lake_is_closed, hops.POLICY, ["s3:GetObject", "warehouse/"],
    ),
    "a table that was frozen": (breaks.frozen, "table STOCK_TRADES", ["AUTO_REFRESH"]),
}  # fmt: skip


def test_every_check_of_a_deployment_passes(deployed):
    assert problems_of(deployed) == []
    assert len(hops.look(deployed.ctx)) == 15


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", BREAKS)
def test_the_broken_hop_is_named_and_after_the_repair_all_pass(deployed, what):
    broken, name, words = BREAKS[what]
    assert_named(deployed, broken, (hops.GROUP.name, name), words)


def test_a_later_error_of_snowflake_is_reported_as_a_consequence(deployed):
    with lacks("snowflake", "glue:GetTable")(deployed):
        deployed.pass_time()
        failed = [check for check in all_checks(deployed) if check.result is Result.FAIL]
        assert [check.name for check in failed if check.is_root] == [hops.POLICY]
        assert {check.name: check.caused_by for check in failed if not check.is_root} == {
            "table STOCK_TRADES": hops.POLICY,
            "table DAILY_TRADES": hops.POLICY,
        }
    deployed.resume()
    assert problems_of(deployed) == []


def test_a_deployer_who_cannot_log_in_does_not_hide_the_checks_of_aws(deployed):
    secret = deployed.ctx.deployment.snowflake.key_secret
    with breaks.secret_holds(deployed, secret, privateKey=keypair.make().private_pem.reveal()):
        checks = {check.name: check.result for check in hops.look(deployed.ctx)}
    assert checks.pop(hops.VOLUME) is Result.FAIL
    assert (checks.pop(hops.ROLE), checks.pop(hops.POLICY)) == (Result.OK, Result.OK)
    assert set(checks.values()) == {Result.SKIPPED}


def list_stacks(client):
    return {stack["StackName"] for stack in client.describe_stacks()["Stacks"]}


def test_aggregates_that_are_not_deployed_yet_hide_no_other_check(deployed):
    """The last test: it replaces the stack."""
    client = boto3.client("cloudformation")
    name = f"{deployed.ctx.deployment.prefix}-snowflake"
    client.delete_stack(StackName=name)
    assert until(lambda: name not in list_stacks(client), PATIENCE)
    names = (("snowflake_external_volume", "Volume"), ("snowflake_catalog_integration", "Catalog"))
    objects = [(kind, logical_id, deployed.given[logical_id]) for kind, logical_id in names]
    deployed._stack("snowflake", {}, {"SchemaName": "LAKE.RAW"}, objects)
    checks = {check.name: check for check in hops.look(deployed.ctx)}
    assert checks[hops.POLICY].result is checks["table STOCK_TRADES"].result is Result.OK
    skipped = {name for name, check in checks.items() if "not deployed yet" in check.message}
    assert skipped == {
        "external volume of aggregates",
        "role's trust of the aggregates' volume",
        "Snowflake reaches the aggregates",
        "Glue database of aggregates in Snowflake",
    }
