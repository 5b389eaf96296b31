"""Each way in which Confluent's handshake with AWS breaks: `doctor` names the one hop to repair, and passes
after the repair.
"""

from __future__ import annotations

import pytest

from lakeferry.health import confluent_to_aws as hops
from lakeferry.health.model import Result
from lambdas.shared.errors import LakeferryError
from tests.support import handshake_breaks as breaks
from tests.support.handshake_breaks import FOREIGN, lacks
from tests.support.handshake_environment import TOPIC, all_checks, assert_named, problems_of

#: What is broken, the check that names it, and what its texts contain.
BREAKS = {
    "another external id in the trust of Confluent": (
        lambda d: breaks.trust(d, "tableflow", external_id="of-another"), hops.TRUST, ["of-another"],
    ),
    "another principal in the trust of Confluent": (
        lambda d: breaks.trust(d, "tableflow", principal=FOREIGN), hops.TRUST, [FOREIGN],
    ),
    "a trust of Confluent that takes any external id": (
        lambda d: breaks.trust(d, "tableflow", without="condition"), hops.TRUST, ["takes any"],
    ),
    "a trust of Confluent that is gone": (
        lambda d: breaks.trust(d, "tableflow", without="statement"), hops.TRUST, ["nobody"],
    ),
    "tags that Confluent may not put on its session": (
        lambda d: breaks.trust(d, "tableflow", 1, without="statement"), hops.TAGS, ["sts:TagSession"],
    ),
    "a trust of Confluent that denies it": (
        lambda d: breaks.trust(d, "tableflow", denied="sts:AssumeRole"), hops.TRUST, ["denies sts:AssumeRole"],
    ),
    "Confluent's role missing": (
        lambda d: breaks.no_role(d, "tableflow"), hops.ROLE, ["-tableflow", "--revert-drift"],
    ),
    **{
        f"Confluent's role without {action}": (lacks("tableflow", action), hops.POLICY, [action, on])
        for action, on in (
            ("s3:GetBucketLocation", "arn:aws:s3:::"), ("s3:ListBucketMultipartUploads", "arn:aws:s3:::"),
            ("s3:PutObject", "/any/key"), ("s3:PutObjectTagging", "/any/key"),
            ("glue:CreateTable", ":table/lkc-"), ("glue:UpdateTable", ":table/lkc-"), ("glue:GetDatabases", ":catalog"),
        )
    },
    "a statement that denies": (
        lambda d: breaks.policy_of(d, "tableflow", more=[breaks.DENIED]), hops.POLICY,
        ["s3:PutObject", "a statement denies it"],
    ),
    "an integration of another role": (
        lambda d: breaks.integration(d, role_arn="arn:aws:iam::000000000000:role/another"),
        hops.INTEGRATION, ["role/another", "-tableflow"],
    ),
    "an integration that was made anew": (
        lambda d: breaks.integration(d, external_id="made-anew"), hops.TRUST, ["made-anew"],
    ),
    "an integration that is gone": (
        lambda d: breaks.integration(d, name="by-somebody"), hops.INTEGRATION, ["doesn't exist"],
    ),
    "a catalog integration that has failed": (
        lambda d: breaks.catalog(d, phase="FAILED", message="Access denied: the role lacks glue:CreateTable"),
        hops.CATALOG, ["FAILED", "glue:CreateTable", "Resume"],
    ),
    "a catalog integration that is suspended": (
        lambda d: breaks.catalog(d, suspended=True), hops.CATALOG, ["suspended"],
    ),
    "a catalog integration with another database": (
        lambda d: breaks.catalog(d, database="elsewhere"), hops.CATALOG, ["elsewhere", "lkc-"],
    ),
    "a catalog integration that is gone": (breaks.catalog_gone, hops.CATALOG, ["has none"]),
    "a table that a bad record suspended": (
        lambda d: breaks.topic(d, suspended=True, message="record at offset 7"), "Tableflow of stock_trades",
        ["suspended", "record at offset 7"],
    ),
    "a bucket that was not empty": (
        lambda d: breaks.topic(d, phase="FAILED", message="The bucket is not empty"), "Tableflow of stock_trades",
        ["not empty"],
    ),
    "Tableflow switched off": (breaks.topic_off, "Tableflow of stock_trades", ["is off"]),
    "a Cloud key in place of Tableflow's": (breaks.a_cloud_key, hops.KEY, ["401", "/confluent/tableflow"]),
    "a Tableflow key that doesn't work": (
        lambda d: breaks.tableflow_key(d, apiSecret="x" * 64), hops.KEY, ["401", "rotate"],
    ),
    "a table that somebody dropped from Glue": (
        breaks.table_dropped, "Glue table stock_trades", ["doesn't show"],
    ),
    "a table that somebody led elsewhere": (breaks.table_elsewhere, "Glue table stock_trades", ["s3://elsewhere/"]),
    "a bucket in another region": (
        lambda d: breaks.bucket_says(
            d, method="GET", query={"location": "*"}, status=200, shape="s3",
            body="<LocationConstraint>us-west-2</LocationConstraint>",
        ), hops.BUCKET, ["us-west-2", "eu-west-1"],
    ),
    "a bucket of somebody else": (
        lambda d: breaks.bucket_says(d, method="HEAD", status=403), hops.BUCKET, ["another account"],
    ),
    "a bucket that is gone": (
        lambda d: breaks.bucket_says(d, method="HEAD", status=404), hops.BUCKET, ["there is no bucket"],
    ),
}  # fmt: skip


def test_every_check_of_a_deployment_passes(deployed):
    assert problems_of(deployed) == []
    assert len(hops.look(deployed.ctx)) == 10


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", BREAKS)
def test_the_broken_hop_is_named_and_after_the_repair_all_pass(deployed, what):
    broken, name, words = BREAKS[what]
    assert_named(deployed, broken, (hops.GROUP.name, name), words)


@pytest.mark.slow
def test_files_of_a_stranger_in_the_bucket_are_a_warning(deployed):
    with breaks.file_of_a_stranger(deployed):
        (seen,) = problems_of(deployed)
    assert seen[:2] == (hops.GROUP.name, hops.BUCKET)
    assert "reports/2026.csv" in seen[2]


def test_a_statement_that_denies_under_conditions_is_not_judged(deployed):
    away = {"NotIpAddress": {"aws:SourceIp": "192.0.2.0/24"}}
    with breaks.trust(deployed, "tableflow", denied="sts:AssumeRole", denied_when=away):
        assert problems_of(deployed) == []


def test_an_invalid_cloud_key_does_not_hide_other_checks(deployed):
    with breaks.secret_holds(
        deployed, deployed.ctx.deployment.confluent.cloud_key_secret, apiSecret="x" * 64
    ):
        checks = {check.name: check.result for check in hops.look(deployed.ctx)}
    assert checks.pop(hops.INTEGRATION) is Result.FAIL
    assert (checks.pop(hops.TRUST), checks.pop(hops.TAGS)) == (Result.SKIPPED, Result.SKIPPED)
    assert set(checks.values()) == {Result.OK}


def test_an_operator_without_access_to_roles_sees_all_other_checks(deployed):
    with breaks.aws_says(deployed, headers={"authorization": "*/iam/*"}, status=403, body=breaks.NOT_YOURS):
        checks = {check.name: check for check in hops.look(deployed.ctx)}
    role = checks.pop(hops.ROLE)
    assert (role.result, "AccessDenied" in role.message) == (Result.WARN, True)
    assert {checks.pop(name).result for name in (hops.TRUST, hops.TAGS, hops.POLICY)} == {Result.SKIPPED}
    assert {check.result for check in checks.values()} == {Result.OK}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (lambda d: breaks.trust(d, "tableflow", external_id="of-another"), hops.TRUST),
        (lacks("tableflow", "glue:UpdateTable"), hops.POLICY),
        (lambda d: breaks.no_role(d, "tableflow"), hops.ROLE),
    ],
)
def test_a_later_error_of_tableflow_is_reported_as_a_consequence(deployed, broken, name):
    with broken(deployed):
        deployed.pass_time()
        failed = [check for check in all_checks(deployed) if check.result is Result.FAIL]
        assert [check.name for check in failed if check.is_root] == [name]
        (follower,) = [check for check in failed if not check.is_root]
        assert (follower.name, follower.caused_by) == ("Tableflow of stock_trades", name)
        assert f"Caused by “{name}”: fix that first" in follower.fix
    deployed.resume()
    assert problems_of(deployed) == []


@pytest.fixture
def table(deployed):
    """The table's resource as CloudFormation creates it, while its cluster's catalog integration fails."""
    lacking = {"without": ["glue:CreateTable", "glue:UpdateTable"]}
    with (
        breaks.policy_of(deployed, "tableflow", **lacking),
        breaks.topic(deployed, synced={}),
        breaks.catalog(deployed, phase="FAILED", message="not looked at yet"),
    ):
        yield deployed.resource("tableflow_topic", "StockTradesTable", adopt=True)
    deployed.resume()
    assert problems_of(deployed) == []


@pytest.mark.slow
def test_a_table_with_a_failed_catalog_is_given_up_with_confluents_message(deployed, table):
    before = deployed.ctx.clock.time()
    with pytest.raises(LakeferryError, match="glue:CreateTable") as failed:
        table.create()
    assert failed.value.kind.code == "CFL-CATALOG-FAILED"
    assert "catalog integration tci-" in failed.value.what
    assert 900 <= deployed.ctx.clock.time() - before < 1800


@pytest.mark.slow
def test_a_table_continues_once_the_role_has_the_permission(deployed, table):
    event = table.event("Create")
    known = {**event, **table.invocations.on_event(event)}
    assert not table.invocations.is_complete(known)["IsComplete"]
    deployed.permit("tableflow")
    for _ in range(60):
        deployed.ctx.clock.sleep(5)
        if (done := table.invocations.is_complete(known))["IsComplete"]:
            break
    assert done["Data"]["topic"] == TOPIC
