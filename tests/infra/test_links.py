"""The templates of a deployment whose mails have links that open."""

from __future__ import annotations

import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import PROJECT
from lambdas import contract
from tests.support import assembly_kit

RECIPIENTS = 'recipients = ["analysts@example.com"]'
TWO = 'recipients = ["ann@example.com", "ben@example.com"]'


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """Return the assembly of the shipped dev deployment with links for two recipients."""
    text = (PROJECT / "deployments" / "dev.toml").read_text()
    text = text.replace(RECIPIENTS, f"{TWO}\nlink_days = 14", 1)
    plan = deployment_file.parse(text, name="linked.toml", judge=NOT_JUDGED)
    made = assembly_kit.synthesise(plan, tmp_path_factory.mktemp("linked"))
    assert not made.failure, made.failure
    return made


def read_filters(assembly):
    return {
        subscription["Endpoint"]: subscription.get("FilterPolicy")
        for subscription in assembly.resources("AWS::SNS::Subscription").values()
    }


def test_each_recipient_gets_only_mails_of_their_own(linked):
    filters = read_filters(linked)
    assert filters.pop("engineers@example.com") is None
    assert filters == {
        address: {contract.RECIPIENT: [contract.build_recipient_id("lakeferry-dev", "daily_trades", address)]}
        for address in ("ann@example.com", "ben@example.com")
    }


def test_without_links_all_recipients_get_the_same_mail(dev):
    assert set(read_filters(dev).values()) == {None}
