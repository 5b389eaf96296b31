"""`lakeferry doctor` over SES: what would keep mails from recipients is named before anything is deployed."""

from __future__ import annotations

import boto3
import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health import doctor, mail
from lakeferry.health.model import Result
from tests.support import shipped


def build_context(table):
    text = shipped.read("dev").replace("[alerts]", f"{table}\n[alerts]", 1)
    return DeploymentContext(deployment_file.parse(text, name="dev.toml", judge=NOT_JUDGED))


def look(lake_aws, sender="exports@mails.example.com"):
    ctx = build_context(f'[mail]\nsender = "{sender}"\n')
    return {check.name: check for check in mail.look(ctx)}


@pytest.fixture
def sandbox():
    """Put the account into the sandbox, and out of it again."""
    ses = boto3.client("sesv2")
    details = {"MailType": "TRANSACTIONAL", "WebsiteURL": "https://example.com"}
    ses.put_account_details(ProductionAccessEnabled=False, **details)
    yield
    ses.put_account_details(ProductionAccessEnabled=True, **details)


@pytest.mark.parametrize("table", ["", '[mail]\nsender = "exports@example.com"\n'])
def test_the_group_is_shown_for_a_file_with_mail_only(lake_aws, table):
    groups = {probe.group for probe in doctor.list_probes(build_context(table))}
    assert (mail.GROUP in groups) == bool(table)


def test_an_identity_that_is_missing_is_named(lake_aws):
    check = look(lake_aws, "exports@missing.example.com")[mail.IDENTITY]
    assert check.result is Result.FAIL
    assert "missing.example.com" in check.message


def test_a_verified_sender_with_production_access_is_ok(lake_aws):
    boto3.client("sesv2").create_email_identity(EmailIdentity="mails.example.com")
    assert {check.result for check in look(lake_aws).values()} == {Result.OK}


def test_the_sandbox_is_a_warning(lake_aws, sandbox):
    assert look(lake_aws)[mail.SENDING].result is Result.WARN
