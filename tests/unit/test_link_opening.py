"""A link shows files, leads to one of them, and opens nothing to anybody else."""

from __future__ import annotations

import html
import json
import re

import attrs
import pytest

from lambdas.handlers import links as handler
from lambdas.links import pages
from lambdas.links.ledger import Revocation
from lambdas.links.pages import Offer, ShownFile
from lambdas.shared import link_tokens
from lambdas.shared.errors import Transient
from lambdas.shared.link_tokens import KeyRing, Link
from lambdas.shared.redaction import Secret
from tests.support.link_environment import (
    ANN,
    AUDIENCE,
    BEN,
    DAYS,
    DOWNLOADS,
    EXPORT,
    LINK,
    NOW,
    OLD_KEY,
    WINDOW,
    LinkEnvironment,
)

NAME = "weekly_sales_2026-W46.csv"


def test_get_shows_the_files_and_counts_no_download():
    env = LinkEnvironment()
    for _ in range(DOWNLOADS + 2):
        page = env.opener.show(env.sign())
        assert page.status == 200
    assert NAME in page.body
    assert "5.0 MB" in page.body
    assert env.ledger.read(LINK).count == 0


def test_post_leads_to_the_file_for_a_minute():
    env = LinkEnvironment()
    answer = env.opener.download(env.sign(), "0")
    assert answer.status == 303
    assert f"/{NAME}?X-Amz-Expires=60&" in answer.headers["Location"]
    assert env.ledger.read(LINK).files == {NAME: 1}


def refuse(env, token, reason):
    for answer in (env.opener.show(token), env.opener.download(token, "0")):
        assert answer == pages.refuse()
    assert env.list_reasons() == [reason, reason]
    assert env.ledger.read(LINK).count == 0


def test_a_wrong_token_opens_nothing():
    refuse(LinkEnvironment(), "nonsense", link_tokens.MALFORMED)


def test_a_forged_token_opens_nothing():
    env = LinkEnvironment()
    token = KeyRing(AUDIENCE, Secret("x" * 64)).sign(LINK, now=NOW, days=DAYS)
    refuse(env, token, link_tokens.UNKNOWN_KEY)
    assert env.asked_again == 2


def test_an_old_token_opens_nothing():
    env = LinkEnvironment()
    refuse(env, env.sign(now=NOW - DAYS * 86400), link_tokens.EXPIRED)


def test_a_token_that_a_replaced_key_signed_opens():
    env = LinkEnvironment()
    token = env.sign(keys=KeyRing(AUDIENCE, OLD_KEY))
    assert env.opener.show(token).status == 200


def test_somebody_who_left_the_list_opens_nothing():
    env = LinkEnvironment()
    env.recipients = {BEN}
    refuse(env, env.sign(), link_tokens.NOT_RECIPIENT)


def test_an_export_without_links_opens_nothing():
    env = LinkEnvironment()
    refuse(env, env.sign(Link("weekly_sales_by_region", WINDOW, 1, ANN)), link_tokens.NOT_RECIPIENT)


@pytest.mark.parametrize(("window", "recipient"), [("", ""), (WINDOW, ""), ("", ANN), (WINDOW, ANN)])
def test_a_revoked_link_opens_nothing_and_later_ones_open(window, recipient):
    env = LinkEnvironment()
    env.ledger.revoke(EXPORT, Revocation(NOW, window, recipient))
    refuse(env, env.sign(), link_tokens.REVOKED)
    env.clock.sleep(1)
    assert env.opener.show(env.sign()).status == 200


@pytest.mark.parametrize(
    ("window", "recipient"), [("2026-W45", ""), ("", BEN), (WINDOW, BEN), ("2026-W45", ANN)]
)
def test_the_revocation_of_other_links_changes_nothing(window, recipient):
    env = LinkEnvironment()
    env.ledger.revoke(EXPORT, Revocation(NOW, window, recipient))
    assert env.opener.show(env.sign()).status == 200


def test_revocations_add_up_and_the_same_one_is_kept_once():
    env = LinkEnvironment()
    for at, recipient in ((1, ANN), (2, BEN), (3, ANN)):
        env.ledger.revoke(EXPORT, Revocation(at, "", recipient))
    assert env.ledger.read_revocations(EXPORT) == [Revocation(2, "", BEN), Revocation(3, "", ANN)]


def test_a_link_is_used_up_after_so_many_downloads_also_with_the_copy_of_another_mail():
    env = LinkEnvironment()
    first = env.sign()
    env.clock.sleep(60)
    second = env.sign()
    assert first != second
    statuses = [env.opener.download(token, "0").status for token in (first, second) * 3]
    assert statuses == [303] * DOWNLOADS + [403] * 3
    assert env.ledger.read(LINK).count == DOWNLOADS
    assert env.opener.show(first) == pages.refuse()
    assert set(env.list_reasons()) == {link_tokens.USED_UP}


def test_another_recipient_s_downloads_are_counted_apart():
    env = LinkEnvironment()
    for _ in range(DOWNLOADS):
        env.opener.download(env.sign(), "0")
    assert env.opener.download(env.sign(attrs.evolve(LINK, recipient=BEN)), "0").status == 303


def test_a_download_between_reading_and_writing_is_counted():
    env = LinkEnvironment()
    env.bucket.on_write = lambda: overtake(env)
    assert env.ledger.count(LINK, NAME, NOW, 2)
    assert env.ledger.read(LINK).count == 2
    assert not env.ledger.count(LINK, NAME, NOW, 2)


def overtake(env):
    env.bucket.on_write = lambda: None
    assert env.ledger.count(LINK, NAME, NOW, 2)


def test_a_count_that_is_always_overtaken_gives_up():
    env = LinkEnvironment()
    env.bucket.on_write = lambda: env.bucket.put(f"links/{LINK.name}.json", {"count": 0})
    with pytest.raises(Transient):
        env.ledger.count(LINK, NAME, NOW, 5)


@pytest.mark.parametrize("chosen", ["", "1", "-1", "0x0", "²", "9" * 50, "0 "])
def test_a_file_that_is_not_offered_is_refused(chosen):
    env = LinkEnvironment()
    assert env.opener.download(env.sign(), chosen) == pages.refuse()
    assert env.ledger.read(LINK).count == 0


def test_an_old_link_leads_to_its_own_files_and_says_that_newer_ones_exist():
    env = LinkEnvironment()
    env.publish_again()
    page = env.opener.show(env.sign())
    assert "A newer version of these files exists: version 2." in page.body
    assert "20261116T060009Z-5a0c9e12" in env.opener.download(env.sign(), "0").headers["Location"]
    newest = env.sign(attrs.evolve(LINK, generation=2))
    assert "newer version" not in env.opener.show(newest).body
    assert "20261117T060009Z-77aa88bb" in env.opener.download(newest, "0").headers["Location"]


@pytest.mark.parametrize("link", [attrs.evolve(LINK, generation=2), attrs.evolve(LINK, window="2026-W01")])
def test_what_was_never_published_is_gone(link):
    env = LinkEnvironment()
    refuse(env, env.sign(link), link_tokens.GONE)


def test_a_file_that_expired_is_gone_and_not_counted():
    env = LinkEnvironment()
    (key,) = [key for key in env.bucket.objects if key.endswith(".csv")]
    del env.bucket.objects[key]
    assert env.opener.download(env.sign(), "0") == pages.refuse()
    assert env.list_reasons() == [link_tokens.GONE]
    assert env.ledger.read(LINK).count == 0


def test_a_manifest_that_names_files_elsewhere_opens_none_of_them():
    env = LinkEnvironment()
    key = f"exports/{EXPORT}/manifests/{WINDOW}.json"
    manifest = json.loads(env.bucket.objects[key][0])
    manifest["files"][0]["key"] = "exports/salaries/data/2026-W46/run/salaries.csv"
    env.bucket.put(key, manifest)
    refuse(env, env.sign(), link_tokens.GONE)


def test_the_log_says_who_opened_what_and_has_neither_token_nor_url():
    env = LinkEnvironment()
    token = env.sign()
    url = env.opener.download(token, "0").headers["Location"]
    env.opener.show(token[:-3] + "AAA")
    opened, refused = env.list_log()
    expected = {"message": "opened", "export": EXPORT, "window": WINDOW, "recipient": ANN, "file": NAME}
    assert expected.items() <= opened.items()
    assert "recipient" not in refused
    written = env.stream.getvalue()
    assert token not in written
    assert token[:-3] not in written
    assert "X-Amz" not in written
    assert url not in written


def test_a_refusal_is_a_metric_with_its_reason():
    env = LinkEnvironment()
    env.opener.show("nonsense")
    (entry,) = env.list_log()
    (directive,) = entry["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Lakeferry"
    assert directive["Dimensions"] == [["Deployment"], ["Deployment", "Reason"]]
    assert (entry["Deployment"], entry["Reason"], entry["LinksRefused"]) == (AUDIENCE, "malformed", 1)
    assert entry["_aws"]["Timestamp"] == NOW * 1000


HOSTILE = "\"><script>alert(1)</script>&'\u202e"


def test_pages_escape_all_texts_and_run_nothing():
    offer = Offer(HOSTILE, HOSTILE, [ShownFile(HOSTILE, "key", 1)], HOSTILE, newer=2)
    for page in (pages.show_files(offer, "https://bucket.s3.example.com"), pages.refuse()):
        assert "<script" not in page.body
        assert not re.search(r"\son\w+=|javascript:|https?://", page.body)
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert 'name="viewport"' in page.body
    assert html.escape(HOSTILE) in pages.show_files(offer, "").body


def test_the_form_may_lead_to_the_bucket_only():
    env = LinkEnvironment()
    policy = env.opener.show(env.sign()).headers["Content-Security-Policy"]
    assert policy.endswith("form-action 'self' https://bucket.s3.example.com")
    assert pages.refuse().headers["Content-Security-Policy"].endswith("form-action 'none'")


def request(method, token, **event):
    context = {"requestId": "r-1", "http": {"method": method}}
    return {"requestContext": context, "pathParameters": {"token": token}, **event}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"body": "file=0"}, 303),
        ({"body": "ZmlsZT0w", "isBase64Encoded": True}, 303),
        ({"body": "!!", "isBase64Encoded": True}, 403),
        ({"body": "/w==", "isBase64Encoded": True}, 403),
        ({}, 403),
    ],
)
def test_the_form_of_a_request_is_read(body, status):
    env = LinkEnvironment()
    assert handler.answer(env.opener, request("POST", env.sign(), **body)).status == status


def test_a_request_without_a_token_is_refused():
    env = LinkEnvironment()
    assert handler.answer(env.opener, request("GET", "") | {"pathParameters": None}) == pages.refuse()
