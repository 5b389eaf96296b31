"""Which files a link opens when its window was published again, and the whole pages that readers see."""

from __future__ import annotations

import itertools
import json
import re

import attrs
import jwt
import pytest

from dev.docs import samples
from lambdas.links import pages
from lambdas.links.ledger import Downloads, Ledger, Revocation
from lambdas.links.opening import URL_SECONDS
from lambdas.links.pages import Offer, Response, ShownFile
from lambdas.shared import link_tokens
from lambdas.shared.errors import LakeferryError, Transient
from lambdas.shared.link_tokens import BadLink, KeyRing, Link, ReplacedKey, SignedLink
from lambdas.shared.redaction import Secret
from tests.support.link_environment import ANN, AUDIENCE, BEN, EXPORT, KEY, LINK, NOW, WINDOW, LinkEnvironment

MANIFEST = f"exports/{EXPORT}/manifests/{WINDOW}.json"
FIRST_RUN = f"exports/{EXPORT}/runs/20261116T060009Z-5a0c9e12.json"
FOLDER = f"exports/{EXPORT}/data/{WINDOW}/"


def edit(env, key, change):
    document = json.loads(env.bucket.objects[key][0])
    change(document)
    env.bucket.put(key, document)


@pytest.fixture
def env():
    env = LinkEnvironment()
    env.publish_again()
    return env


def names(env, link=LINK):
    """Return the numbers and names of the files that a link shows."""
    return re.findall(r'value="(\d+)">Download ([^<]+)<', env.opener.show(env.sign(link)).body)


NAME = "weekly_sales_2026-W46.csv"


def test_an_earlier_generation_is_found_in_the_record_of_its_run(env):
    assert names(env) == [("0", NAME)]

    def surround(record):
        (window,) = record["windows"]
        others = [window | {"window": "2026-W45", "files": []}, window | {"generation": 7, "files": []}]
        record["windows"] = [*others, window]

    edit(env, FIRST_RUN, surround)
    assert names(env) == [("0", NAME)]
    edit(env, MANIFEST, lambda manifest: manifest["generations"].reverse())
    assert names(env) == [("0", NAME)]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("windows"),
        lambda record: record.update(windows=[]),
        lambda record: record["windows"][0].update(window="2026-W45"),
        lambda record: record["windows"][0].update(generation=2),
        lambda record: record["windows"][0].update(files=None),
    ],
)
def test_an_earlier_generation_whose_record_says_nothing_of_it_is_gone(env, change):
    edit(env, FIRST_RUN, change)
    assert env.opener.show(env.sign()) == pages.refuse()
    assert env.list_reasons() == [link_tokens.GONE]


def test_an_earlier_generation_whose_record_has_expired_is_gone(env):
    del env.bucket.objects[FIRST_RUN]
    assert env.opener.show(env.sign()) == pages.refuse()
    assert env.opener.download(env.sign(), "0") == pages.refuse()
    assert env.list_reasons() == [link_tokens.GONE] * 2


@pytest.mark.parametrize("known", [None, [], [{"run_id": "x"}], [{"generation": 9, "run_id": "x"}]])
def test_a_generation_that_no_manifest_knows_is_gone(env, known):
    edit(env, MANIFEST, lambda manifest: manifest.update(generations=known))
    assert env.opener.show(env.sign()) == pages.refuse()
    assert env.list_reasons() == [link_tokens.GONE]


def test_only_delivered_files_in_the_window_s_folder_are_shown():
    env = LinkEnvironment()
    files = [
        {"role": "data", "key": f"{FOLDER}run/a.csv", "size": 1000},
        {"role": "manifest", "key": f"{FOLDER}run/b.json"},
        {"key": f"{FOLDER}run/c.csv"},
        {"role": "data", "key": f"exports/{EXPORT}/data/2026-W45/run/d.csv"},
        {"role": "xlsx", "key": f"{FOLDER}run/e.xlsx", "size": None},
    ]
    edit(env, MANIFEST, lambda manifest: manifest.update(files=files))
    assert names(env) == [("0", "a.csv"), ("1", "e.xlsx")]
    assert "<small>0.0 kB</small>" in env.opener.show(env.sign()).body
    env.bucket.put(f"{FOLDER}run/e.xlsx", {})
    assert "/e.xlsx?" in env.opener.download(env.sign(), "1").headers["Location"]
    assert env.ledger.read(LINK).files == {"e.xlsx": 1}
    for number in ("2", "0001"):
        assert env.opener.download(env.sign(), number).status == 403


@pytest.mark.parametrize(
    ("export", "title"), [(EXPORT, "Weekly sales"), ("not_in_project", "not_in_project")]
)
def test_a_page_has_the_title_of_the_contract_and_else_the_name_of_the_export(export, title):
    env = LinkEnvironment()
    text = json.dumps(samples.manifests()[0]).replace(EXPORT, export)
    env.publish(json.loads(text))
    opener = attrs.evolve(env.opener, exports={export: env.opener.exports[EXPORT]})
    page = opener.show(env.sign(attrs.evolve(LINK, export=export)))
    assert (page.status, f"<h1>{title}, {WINDOW}</h1>" in page.body) == (200, True)


def test_a_number_of_a_file_has_three_digits_at_most():
    env = LinkEnvironment()
    assert env.opener.download(env.sign(), "000").status == 303
    assert env.opener.download(env.sign(), "0000").status == 403
    assert env.list_reasons() == [link_tokens.MALFORMED]


def test_the_page_shows_as_many_downloads_as_are_left():
    env = LinkEnvironment()
    env.downloads = 1
    assert env.opener.show(env.sign()).status == 200
    assert env.opener.download(env.sign(), "0").status == 303
    assert env.opener.show(env.sign()).status == 403
    assert env.list_reasons() == [link_tokens.USED_UP]


def test_what_is_logged_of_each_request():
    env = LinkEnvironment()
    env.opener.show(env.sign())
    env.opener.download(env.sign(), "0")
    env.opener.download(env.sign(), "9")
    whose = {"level": "INFO", "export": EXPORT, "window": WINDOW, "generation": 1, "recipient": ANN}
    shown, opened, refused = env.list_log()
    assert shown == {**whose, "message": "shown"}
    assert opened == {**whose, "message": "opened", "file": NAME}
    metric = {
        "Namespace": "Lakeferry",
        "Dimensions": [["Deployment"], ["Deployment", "Reason"]],
        "Metrics": [{"Name": "LinksRefused", "Unit": "Count"}],
    }
    assert refused == {
        **whose,
        "message": "refused",
        "_aws": {"Timestamp": NOW * 1000, "CloudWatchMetrics": [metric]},
        "Deployment": AUDIENCE,
        "Reason": "malformed",
        "LinksRefused": 1,
    }


def test_a_presigned_address_is_that_of_a_download_for_a_minute():
    env = LinkEnvironment()
    asked = []
    presign = env.bucket.generate_presigned_url
    env.bucket.generate_presigned_url = lambda name, **given: (
        asked.append((name, given)) or presign(name, **given)
    )
    edit(
        env,
        MANIFEST,
        lambda manifest: manifest.update(files=[{"role": "data", "key": f"{FOLDER}a b/ü'/.csv"}]),
    )
    env.bucket.put(f"{FOLDER}a b/ü'/.csv", {})
    env.opener.download(env.sign(), "0")
    disposition = "attachment; filename*=UTF-8''.csv"
    parameters = {
        "Bucket": env.objects.bucket,
        "Key": f"{FOLDER}a b/ü'/.csv",
        "ResponseContentDisposition": disposition,
    }
    assert asked == [("get_object", {"Params": parameters, "ExpiresIn": URL_SECONDS})]
    assert URL_SECONDS == 60


# --- pages


def read_body(response):
    """Return the body without the style, which has a hash in the policy."""
    return re.sub(r"<style>.*?</style>", "", response.body)


HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width,initial-scale=1">'
)
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}


@pytest.mark.parametrize("newer", [None, 3])
def test_the_whole_page_with_files(newer):
    files = [ShownFile("a<b>.csv", "key", 2_500_000), ShownFile("c.xlsx", "key", 5)]
    response = pages.show_files(Offer("S & T", "2026-W46", files, "<until>", newer), "https://bucket")
    note = (
        '<p class="note"><strong>A newer version of these files exists: version 3.</strong> '
        "Use the link in the mail about it. The files below are the earlier version that this link was "
        "made for.</p>"
    )
    assert read_body(response) == (
        f"{HEAD}<title>S &amp; T, 2026-W46</title></head><body><h1>S &amp; T, 2026-W46</h1>"
        f"{note if newer else ''}"
        '<form method="post"><ul>'
        '<li><button name="file" value="0">Download a&lt;b&gt;.csv<br><small>2.5 MB</small></button></li>'
        '<li><button name="file" value="1">Download c.xlsx<br><small>0.0 kB</small></button></li>'
        "</ul></form>"
        "<p><small>This link is yours, and works until &lt;until&gt;. Downloads are recorded. "
        "Please don't forward it.</small></p></body></html>"
    )
    policy = response.headers.pop("Content-Security-Policy")
    assert response.headers == {**HEADERS, "Content-Type": "text/html; charset=utf-8"}
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'; "
        r"frame-ancestors 'none'; form-action 'self' https://bucket",
        policy,
    )


def test_the_whole_page_of_a_link_that_opens_nothing():
    response = pages.refuse()
    assert response.status == 403
    assert read_body(response) == (
        f"{HEAD}<title>This link opens nothing</title></head><body><h1>This link opens nothing</h1>"
        "<p>It may be incomplete, too old, used too often, or ended by the team that runs the export.</p>"
        "<p>Open the link in the newest mail about this export, or ask the team that the mail names.</p>"
        "</body></html>"
    )


def test_an_answer_as_api_gateway_has_it():
    assert pages.redirect("https://bucket/key").document() == {
        "statusCode": 303,
        "headers": {**HEADERS, "Location": "https://bucket/key"},
        "body": "",
    }
    assert Response(200, {}, "text").document() == {"statusCode": 200, "headers": {}, "body": "text"}


# --- what became of links


def test_the_counts_of_a_link():
    ledger = LinkEnvironment().ledger
    assert ledger.read(LINK) == Downloads(0, 0, 0, {})
    for name, now in (("a", NOW + 0.9), ("b", NOW + 5), ("a", NOW + 9)):
        assert ledger.count(LINK, name, now, 3)
    assert not ledger.count(LINK, "a", NOW + 10, 3)
    assert ledger.read(LINK) == Downloads(3, NOW, NOW + 9, {"a": 2, "b": 1})


def test_the_links_of_an_export_that_were_used():
    env = LinkEnvironment()
    links = [Link(EXPORT, "2026-W45", 2, BEN), LINK, attrs.evolve(LINK, recipient="a-b")]
    for link in links:
        env.ledger.count(link, "a", NOW, 3)
    env.ledger.count(Link("other", WINDOW, 1, ANN), "a", NOW, 3)
    env.ledger.revoke(EXPORT, Revocation(NOW))
    env.bucket.put(f"links/{EXPORT}/{WINDOW}/notes.json", {})
    assert sorted((link.name, used.count) for link, used in env.ledger.list_downloads(EXPORT)) == sorted(
        (link.name, 1) for link in links
    )
    assert list(env.ledger.list_downloads("none")) == []


@pytest.mark.parametrize(
    ("revocation", "ends"),
    [
        (Revocation(NOW), True),
        (Revocation(NOW - 1), False),
        (Revocation(NOW, WINDOW, ANN), True),
        (Revocation(NOW, "2026-W45", ANN), False),
        (Revocation(NOW, WINDOW, BEN), False),
        (Revocation(NOW - 1, WINDOW, ANN), False),
    ],
)
def test_which_links_a_revocation_ends(revocation, ends):
    assert revocation.ends(SignedLink(LINK, NOW, NOW + 1)) is ends


@pytest.mark.parametrize(
    ("write", "what"),
    [
        (lambda ledger: ledger.revoke(EXPORT, Revocation(1)), f"the revocations of {EXPORT}"),
        (lambda ledger: ledger.count(LINK, "a", 1, 5), f"the downloads of {LINK.name}"),
    ],
)
def test_a_write_that_is_always_overtaken_is_tried_twenty_times(write, what):
    env = LinkEnvironment()
    tries = []

    class Overtaken:
        def read(self, key):
            return None

        def write(self, key, document, *, over):
            tries.append(over)

    with pytest.raises(Transient) as raised:
        write(Ledger(Overtaken(), "links"))
    assert (raised.value.kind.code, raised.value.what) == ("LINK-BUSY", what)
    assert tries == [None] * 20
    assert env.ledger.read_revocations(EXPORT) == []


# --- limits of tokens


@pytest.mark.parametrize(("length", "is_key"), [(31, False), (32, True)])
def test_a_key_has_thirty_two_characters_at_least(length, is_key):
    fields = {"linkKey": "k" * length}
    if is_key:
        assert link_tokens.parse_keys(fields, AUDIENCE) == KeyRing(AUDIENCE, Secret("k" * 32), ())
        return
    with pytest.raises(LakeferryError) as raised:
        link_tokens.parse_keys(fields, AUDIENCE)
    assert raised.value.kind.code == "AWS-SECRET-SHAPE"
    assert raised.value.what == "the secret of links has no linkKey"


@pytest.mark.parametrize("text", ["no list", "[1]", '[{"key": "k"}]', '[{"until": 1}]', "1"])
def test_replaced_keys_of_another_form_are_reported(text):
    with pytest.raises(LakeferryError) as raised:
        link_tokens.parse_replaced(text)
    assert raised.value.kind.code == "AWS-SECRET-SHAPE"
    assert raised.value.what == "replacedKeys of the secret of links is not a list of keys"


def test_replaced_keys_are_written_and_read_in_their_order():
    keys = (ReplacedKey(Secret("a"), 1), ReplacedKey(Secret("b"), 2))
    assert link_tokens.write_replaced(keys) == '[{"key": "a", "until": 1}, {"key": "b", "until": 2}]'
    assert link_tokens.parse_replaced(link_tokens.write_replaced(keys)) == keys
    assert link_tokens.parse_replaced("") == link_tokens.parse_replaced("[]") == ()


def test_a_token_has_two_thousand_characters_at_most():
    keys = KeyRing(AUDIENCE, KEY)
    claims = jwt.decode(keys.sign(LINK, now=NOW, days=1), options={"verify_signature": False})
    tokens = {}
    for size, padding in itertools.product(range(1230, 1270), range(4)):
        headers = {"kid": link_tokens.identify_key(KEY), "more": "x" * padding}
        token = jwt.encode(claims | {"window": "w" * size}, KEY.reveal(), headers=headers)
        tokens[len(token)] = token
    assert keys.verify(tokens[2000], now=NOW).signed == NOW
    with pytest.raises(BadLink) as raised:
        keys.verify(tokens[2001], now=NOW)
    assert (raised.value.reason, raised.value.link) == (link_tokens.MALFORMED, None)


def test_the_link_of_an_expired_token_is_known_and_that_of_a_forged_one_is_not():
    keys = KeyRing(AUDIENCE, KEY)
    token = keys.sign(LINK, now=NOW + 0.9, days=1)
    assert keys.verify(token, now=NOW + 86399.9) == SignedLink(LINK, NOW, NOW + 86400)
    with pytest.raises(BadLink) as raised:
        keys.verify(token, now=NOW + 86400)
    assert (str(raised.value), raised.value.link) == ("expired", LINK)
    with pytest.raises(BadLink) as raised:
        KeyRing(AUDIENCE, Secret("x" * 32)).verify(token, now=NOW)
    assert (raised.value.reason, raised.value.link) == ("unknown key", None)


def test_the_id_of_a_key_never_changes():
    """The headers of living links have it."""
    assert link_tokens.identify_key(KEY) == "4e58e4e6099f0951"
