"""Check links in mails: an analyst opens the file with the link, and nobody else opens anything."""

from __future__ import annotations

import re
import time
from typing import Any, Final

import requests

from config.deployments.export_model import Export
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require
from lambdas import contract
from lambdas.shared.link_tokens import DAY, Link, parse_keys

_OPENED: Final = "the link in a mail opens the file"
_REFUSED: Final = "links of others, old links and revoked links open nothing"
_SECONDS: Final = 60


def links_open(harness: Harness) -> list[Result]:
    """Open the link of the newest mail about an export, and try links that must open nothing.

    The link is opened as the recipient does it: without any credentials of AWS.
    """
    export = _choose_export(harness)
    if export is None:
        why = "no mail about a published window has a link"
        return [NotApplicable(_OPENED, why), NotApplicable(_REFUSED, why)]
    address = export.recipients[0]
    link = _find_link(harness, export, address)
    page = _ask("GET", link)
    require(page.status_code == 200, f"the link shows status {page.status_code}: {page.text[:300]}")
    answer = _ask("POST", link, {"file": "0"})
    require(answer.status_code == 303, f"the button has status {answer.status_code}: {answer.text[:300]}")
    content = requests.get(answer.headers["Location"], timeout=_SECONDS)
    require(content.status_code == 200, f"the file has status {content.status_code}: {content.text[:300]}")
    published = _read_published(harness, export)
    require(content.content == published, f"the link gave {len(content.content)} other bytes")
    opened = f"{export.contract}: {address} gets {len(published)} bytes, as published"
    return [
        Check(_OPENED, opened, {"bytes": len(published)}),
        _check_refusals(harness, export, address, link),
    ]


def _check_refusals(harness: Harness, export: Export, address: str, link: str) -> Check:
    """Try links of a colleague, an expired one and others, and then revoke the one that opened."""
    prefix, _, token = link.rpartition("/")
    wrong = _make_wrong_tokens(harness, export, address, token)
    for what, other in wrong.items():
        for method in ("GET", "POST"):
            answer = _ask(method, f"{prefix}/{other}", {"file": "0"} if method == "POST" else None)
            require(answer.status_code == 403, f"a link {what} has status {answer.status_code}")
    used = harness.project.run(f"export links {export.contract}")["links"]
    require(
        [entry["recipient"] for entry in used] == [address], f"the links that were used are said to be {used}"
    )
    harness.project.run(f"export links {export.contract} --revoke --recipient {address} --yes")
    answer = _ask("GET", link)
    require(answer.status_code == 403, f"a revoked link has status {answer.status_code}")
    return Check(_REFUSED, ", ".join([*wrong, "that was revoked"]), {"refused": 2 * len(wrong) + 1})


def _make_wrong_tokens(harness: Harness, export: Export, address: str, token: str) -> dict[str, str]:
    """Sign with the deployment's key what its functions never sign, and change what they signed."""
    prefix = harness.deployment.prefix
    keys = parse_keys(harness.secret(f"{prefix}/links/signing_key"), prefix)
    now = time.time()
    own = keys.verify(token, now=now).link
    colleague = contract.build_recipient_id(prefix, export.contract, f"colleague-of-{address}")
    of_colleague = Link(own.export, own.window, own.generation, colleague)
    return {
        "of a colleague": keys.sign(of_colleague, now=now, days=1),
        "that expired": keys.sign(own, now=now - 2 * DAY, days=1),
        "that was changed": token[:-4] + "AAAA",
    }


def _choose_export(harness: Harness) -> Export | None:
    """Return an export with links about which a mail was sent."""
    for export in harness.deployment.exports_with_links:
        if _list_links(harness, export, export.recipients[0]):
            return export
    return None


def _find_link(harness: Harness, export: Export, address: str) -> str:
    """Return the link of the newest mail. Raises CheckFailed if another recipient has the same one."""
    link = _list_links(harness, export, address)[-1]
    others = [other for other in export.recipients if other != address]
    for other in others:
        require(link not in _list_links(harness, export, other), f"{other} got the link of {address}")
    return link


def _list_links(harness: Harness, export: Export, address: str) -> list[str]:
    pattern = re.compile(rf"https?://\S+/{contract.LINK_PATH}/\S+")
    mails: list[dict[str, Any]] = harness.simulators.ask_aws("GET", "/mail")
    links = []
    for mail in mails:
        is_about = mail["topic"].endswith(f"_{export.contract}") and mail["kind"] != "confirmation"
        if mail["to"] == address and is_about:
            links += pattern.findall(mail["body"])
    return links


def _read_published(harness: Harness, export: Export) -> bytes:
    """Return the newest published file with rows."""
    bucket = harness.output("data", "LakeBucketName")
    keys = harness.objects(bucket, f"exports/{export.contract}/data/")
    data = [key for key in keys if key.endswith((".csv", ".csv.gz"))]
    return harness.content(bucket, max(data))


def _ask(method: str, address: str, form: dict[str, str] | None = None) -> requests.Response:
    return requests.request(method, address, data=form, allow_redirects=False, timeout=_SECONDS)
