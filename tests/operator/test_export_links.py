"""`lakeferry export links`: which links were used, and which a revocation ends."""

from __future__ import annotations

import json
import time

import boto3
import pytest
from typer.testing import CliRunner

from lakeferry.__main__ import app
from lakeferry.deployment import context
from lambdas import contract
from lambdas.links.ledger import Ledger, Revocation
from lambdas.shared.link_tokens import Link, SignedLink
from lambdas.shared.s3 import Objects
from tests.support import shipped
from tests.support.leftovers import QUEUE
from tests.support.promises import promised
from tests.support.stand_ins import Stacks

STAGE = "orders"
EXPORT = "weekly_store_orders"
ANALYSTS = "analysts@example.com"
FORMER = "former@example.com"


class Team:
    """A deployment of orders.toml with the export's job and bucket."""

    def __init__(self, ctx):
        self.ctx = ctx
        self.bucket = f"{ctx.deployment.prefix}-files"
        self.s3 = boto3.client("s3")
        self.ledger = Ledger(Objects(self.s3, self.bucket), "links")

    def create(self):
        place = {"LocationConstraint": self.ctx.region}
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration=place)
        boto3.client("glue").create_job(
            Name=f"{self.ctx.deployment.prefix}-{EXPORT}",
            Role="arn:aws:iam::000000000000:role/none",
            Command={"Name": "glueetl", "ScriptLocation": "s3://none/script.py"},
            DefaultArguments={"--export": EXPORT, "--bucket": self.bucket, "--prefix": "exports"},
            Timeout=60,
        )

    def identify(self, address):
        return contract.build_recipient_id(self.ctx.deployment.prefix, EXPORT, address)

    def mail(self, address, window="2026-W46"):
        """Leave the marker of a mail."""
        key = f"notices/{EXPORT}/{window}/{contract.name_recipient_marker(self.identify(address))}.json"
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=b"{}")

    def link(self, address, window="2026-W46"):
        return Link(EXPORT, window, 1, self.identify(address))

    def ends(self, address, signed, window="2026-W46"):
        """Return whether a link that was signed then is revoked."""
        link = SignedLink(self.link(address, window), int(signed), int(signed) + 86400)
        return any(entry.ends(link) for entry in self.ledger.read_revocations(EXPORT))


@pytest.fixture(scope="module")
def deployed_team(stand_ins):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEFERRY_CONFLUENT_URL", stand_ins.cloud.url)
        shipped.require_unedited()
        with context.open_context(STAGE) as ctx:
            Stacks(ctx).make("exports", {"Queue": QUEUE})
            team = Team(ctx)
            team.create()
            yield team


@pytest.fixture
def team(deployed_team):
    """The team, without links of another test."""
    yield deployed_team
    for item in deployed_team.s3.list_objects_v2(Bucket=deployed_team.bucket).get("Contents", []):
        deployed_team.s3.delete_object(Bucket=deployed_team.bucket, Key=item["Key"])


def call(*words):
    answer = CliRunner().invoke(app, ["export", "links", EXPORT, *words, "--stage", STAGE, "--json"])
    return answer.exit_code, json.loads(answer.stdout)


def test_links_that_were_used_are_shown_with_their_recipients(team):
    team.ledger.count(team.link(ANALYSTS), "orders.csv", 1_795_000_000, 20)
    team.ledger.count(team.link(FORMER), "orders.csv", 1_795_000_100, 20)
    code, document = call()
    assert (code, document.keys()) == (0, promised("export links"))
    former, analysts = document["links"]
    assert (analysts["recipient"], analysts["downloads"]) == (ANALYSTS, 1)
    assert former["recipient"] == f"{team.identify(FORMER)} (no longer in the list)"
    assert document["revoked"] == document["revoked_now"] == []


def test_a_revocation_ends_links_of_one_recipient_that_were_signed_before_it(team):
    began = time.time()
    code, document = call("--revoke", "--recipient", ANALYSTS, "--yes")
    ended = time.time()
    assert code == 0
    (entry,) = document["revoked_now"]
    assert began - 1 <= entry["at"] <= ended
    assert team.ends(ANALYSTS, began - 10)
    assert not team.ends(FORMER, began - 10)
    assert not team.ends(ANALYSTS, ended + 1)


def test_a_former_recipient_s_links_can_be_ended(team):
    team.mail(FORMER)
    code, _ = call("--revoke", "--recipient", FORMER, "--yes")
    assert code == 0
    assert team.ends(FORMER, time.time() - 10)


@pytest.mark.parametrize("address", ["analyst@example.com", "Analysts@example.com"])
def test_an_address_that_got_no_mail_is_refused_and_nothing_is_ended(team, address):
    code, document = call("--revoke", "--recipient", address, "--yes")
    assert (code, document["code"]) == (2, "LINK-RECIPIENT")
    assert address in document["message"]
    assert ANALYSTS in document["hint"]
    assert team.ledger.read_revocations(EXPORT) == []


def test_links_of_one_window_are_ended_and_a_later_call_keeps_the_entry(team):
    assert call("--revoke", "--windows", "2026-W46", "--yes")[0] == 0
    assert call("--revoke", "--recipient", ANALYSTS, "--yes")[0] == 0
    entries = team.ledger.read_revocations(EXPORT)
    assert {(entry.window, entry.recipient) for entry in entries} == {
        ("2026-W46", ""), ("", team.identify(ANALYSTS)),
    }  # fmt: skip
    assert not Revocation(entries[0].at, "2026-W46").ends(
        SignedLink(team.link(FORMER, "2026-W45"), entries[0].at, entries[0].at + 1)
    )


def test_nothing_is_ended_without_a_yes(team):
    code, document = call("--revoke")
    assert (code, document["code"]) == (2, "LINK-NOT-CONFIRMED")
    assert team.ledger.read_revocations(EXPORT) == []
