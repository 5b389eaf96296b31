"""The function that opens links, with boto3 and an embedded AWS: its bucket, its key, real downloads."""

from __future__ import annotations

import base64
import functools
import itertools
import json
import os
import time
import urllib.error
import urllib.request

import boto3
import pytest

from dev.docs import samples
from lambdas import contract
from lambdas.handlers import links as handler
from lambdas.handlers import notifications
from lambdas.handlers.runtime import get_client
from lambdas.links.ledger import Ledger, Revocation
from lambdas.shared import redaction
from lambdas.shared.link_tokens import Link, parse_keys
from lambdas.shared.log import open_log
from lambdas.shared.s3 import Objects
from tests.support.resource_environment import ManualClock

_numbers = itertools.count(1)
_client = functools.cache(boto3.client)
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
EXPORT = "weekly_sales"
DEPLOYMENT = "lakeferry-dev"
ANN = contract.build_recipient_id(DEPLOYMENT, EXPORT, "ann@example.com")
LINK = Link(EXPORT, "2026-W46", 1, ANN)
CONTENT = b"a;b\n1;2\n"
FIRST = "f" * 64
SECOND = "s" * 64


@pytest.fixture(autouse=True, scope="module")
def _warm():
    """Share the function's clients and the tests' clients while this embedded AWS runs."""
    yield
    for cache in (get_client, _client, handler._open_keys, handler._read_exports):
        cache.cache_clear()


class Deployed:
    """A bucket with a published window, and a secret with a key."""

    def __init__(self, region):
        number = next(_numbers)
        self.bucket = f"links-{number}"
        self.secret = f"lakeferry-dev/links/{number}"
        _client("s3").create_bucket(
            Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": region}
        )
        manifest = samples.manifests()[0]
        self.put(f"exports/{EXPORT}/manifests/2026-W46.json", json.dumps(manifest).encode())
        for file in manifest["files"]:
            self.put(file["key"], CONTENT)
        export = {"export": EXPORT, "job": "job", "cron": "", "zone": "UTC", "late_after_hours": 6}
        export |= {"recipient_ids": [ANN], "link_days": 14, "link_downloads": 2}
        self.put("settings.json", json.dumps({"exports": [export]}).encode())
        _client("secretsmanager").create_secret(Name=self.secret, SecretString=json.dumps({"linkKey": FIRST}))

    def put(self, key, content):
        _client("s3").put_object(Bucket=self.bucket, Key=key, Body=content)

    @property
    def keys(self):
        value = _client("secretsmanager").get_secret_value(SecretId=self.secret)["SecretString"]
        return parse_keys(json.loads(value), DEPLOYMENT)

    def sign(self):
        return self.keys.sign(LINK, now=time.time(), days=1)

    def ask(self, method, token):
        context = {"requestId": "r", "http": {"method": method}}
        body = {"body": base64.b64encode(b"file=0").decode(), "isBase64Encoded": True}
        event = {"requestContext": context, "pathParameters": {"token": token}, **body}
        return handler.open_link(event, None)


@pytest.fixture
def deployed(lake_aws, monkeypatch):
    made = Deployed(lake_aws.region)
    environment = {
        contract.LAKE_BUCKET: made.bucket,
        contract.LAKE_PREFIX: "exports",
        contract.LINKS_PREFIX: "links",
        contract.SETTINGS: f"s3://{made.bucket}/settings.json",
        contract.LINK_SECRET: made.secret,
        contract.DEPLOYMENT: DEPLOYMENT,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return made


def test_a_link_leads_to_the_file_and_is_counted(deployed):
    token = deployed.sign()
    assert deployed.ask("GET", token)["statusCode"] == 200
    answers = [deployed.ask("POST", token) for _ in range(3)]
    assert [answer["statusCode"] for answer in answers] == [303, 303, 403]
    with _opener.open(answers[0]["headers"]["Location"]) as answer:
        assert answer.read() == CONTENT
        assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''weekly_sales_")


def test_the_presigned_url_is_for_one_file(deployed):
    url = deployed.ask("POST", deployed.sign())["headers"]["Location"]
    assert "X-Amz-Expires=60&" in url
    other = f"exports/{EXPORT}/manifests/2026-W46.json"
    path, _, query = url.partition("?")
    with pytest.raises(urllib.error.HTTPError) as raised:
        _opener.open(f"{path.partition(deployed.bucket)[0]}{deployed.bucket}/{other}?{query}")
    assert raised.value.code == 403
    raised.value.close()


def test_a_revocation_applies_at_once(deployed):
    token = deployed.sign()
    ledger = Ledger(Objects(_client("s3"), deployed.bucket), "links")
    ledger.revoke(EXPORT, Revocation(int(time.time()) + 1))
    assert deployed.ask("GET", token)["statusCode"] == 403


def test_a_rotated_key_is_read_again_while_the_function_stays_warm(deployed):
    clock = ManualClock()
    clock.now = time.time()
    cache = handler.KeyCache(deployed.secret, DEPLOYMENT, clock)
    before = deployed.sign()
    assert cache.read(False).verify(before, now=clock.now).link == LINK
    replaced = json.dumps([{"key": FIRST, "until": int(clock.now) + 86400}])
    value = json.dumps({"linkKey": SECOND, "replacedKeys": replaced})
    _client("secretsmanager").put_secret_value(SecretId=deployed.secret, SecretString=value)
    after = deployed.sign()
    assert cache.read(True).current.reveal() == FIRST, "whoever invents keys must not make it read each time"
    clock.sleep(handler.KEYS_REST + 1)
    keys = cache.read(True)
    assert [keys.verify(token, now=clock.now).link for token in (before, after)] == [LINK, LINK]


def test_the_log_of_the_function_has_no_token_no_url_and_no_key(deployed, capsys):
    token = deployed.sign()
    url = deployed.ask("POST", token)["headers"]["Location"]
    deployed.ask("GET", f"{token[:-2]}xx")
    written = capsys.readouterr().out
    assert '"message": "opened"' in written
    assert '"message": "refused"' in written
    assert not [text for text in (token, token[:-2], url, "X-Amz-", FIRST) if text in written]


def test_a_mail_has_a_link_that_opens(deployed, lake_aws, monkeypatch):
    """The function that mails signs with the key that the other one verifies with."""
    environment = {
        contract.PROJECT: "lakeferry",
        contract.STAGE: "dev",
        contract.NOTICES_PREFIX: "notices",
        contract.TOPIC_ARNS: "arn:aws:sns:eu-west-1:000000000000:x_",
        contract.LINK_URL: "https://links.example.com",
        "AWS_REGION": lake_aws.region,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = notifications.read_settings(os.environ, _client("s3"))
    clock = ManualClock()
    clock.now = time.time()
    with redaction.invocation():
        notifier = notifications.build(settings, clock, open_log(), "request")
        address = notifier.signer.open_for(settings.exports[EXPORT], ANN).sign("2026-W46", 1)
    beginning, _, token = address.rpartition("/")
    assert beginning == "https://links.example.com/open"
    assert deployed.ask("GET", token)["statusCode"] == 200
