"""Check links in mails: an analyst opens the file with the link, and nobody else opens anything."""

from __future__ import annotations

import re
import time
from typing import Final

import requests

from config.deployments.export_model import Export
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require
from lakeferry.verification.claims import Claim
from lambdas import contract
from lambdas.shared.link_tokens import DAY, KeyRing, Link, parse_keys

_REFUSED: Final = "links of others, old links and revoked links open nothing"
_SECONDS: Final = 60


def links_open(harness: Harness) -> list[Result]:
    """Open the link of the newest mail about an export, and try links that must open nothing.

    The link is opened as the recipient does it: without any credentials of AWS.
    """
    export = _choose_export(harness)
    if export is None:
        why = "no export with links has published a file"
        return [NotApplicable(Claim.LINKS, why), NotApplicable(_REFUSED, why)]
    keys = _read_keys(harness)
    address = export.recipients[0]
    link = _find_link(harness, keys, export, address)
    page = _ask("GET", link)
    require(page.status_code == 200, f"the link shows status {page.status_code}: {page.text[:300]}")
    answer = _ask("POST", link, {"file": "0"})
    require(answer.status_code == 303, f"the button has status {answer.status_code}: {answer.text[:300]}")
    content = requests.get(answer.headers["Location"], timeout=_SECONDS)
    require(content.status_code == 200, f"the file has status {content.status_code}: {content.text[:300]}")
    published = _read_published(harness, export, keys.verify(link.rpartition("/")[2], now=time.time()).link)
    require(content.content == published, f"the link gave {len(content.content)} other bytes")
    opened = f"{export.contract}: {address} gets {len(published)} bytes, as published"
    return [
        Check(Claim.LINKS, opened, {"bytes": len(published)}),
        _check_refusals(harness, keys, export, link),
    ]


def _check_refusals(harness: Harness, keys: KeyRing, export: Export, link: str) -> Check:
    """Try links of a colleague, an expired one and others, and then revoke the one that opened."""
    address = export.recipients[0]
    beginning, _, token = link.rpartition("/")
    wrong_tokens = _make_wrong_tokens(harness, keys, export, token)
    for kind, wrong_token in wrong_tokens.items():
        for method in ("GET", "POST"):
            form = {"file": "0"} if method == "POST" else None
            answer = _ask(method, f"{beginning}/{wrong_token}", form)
            require(answer.status_code == 403, f"a link {kind} has status {answer.status_code}")
    used = harness.project.run(f"export links {export.contract}")["links"]
    require(
        [entry["recipient"] for entry in used] == [address], f"the links that were used are said to be {used}"
    )
    harness.project.run(f"export links {export.contract} --revoke --recipient {address} --yes")
    answer = _ask("GET", link)
    require(answer.status_code == 403, f"a revoked link has status {answer.status_code}")
    kinds = [*wrong_tokens, "that was revoked"]
    return Check(_REFUSED, ", ".join(kinds), {"refused": 2 * len(wrong_tokens) + 1})


def _read_keys(harness: Harness) -> KeyRing:
    prefix = harness.deployment.prefix
    return parse_keys(harness.secret(f"{prefix}/links/signing_key"), prefix)


def _make_wrong_tokens(harness: Harness, keys: KeyRing, export: Export, token: str) -> dict[str, str]:
    """Sign with the deployment's key what its functions never sign, and change what they signed."""
    now = time.time()
    own = keys.verify(token, now=now).link
    stranger = f"colleague-of-{export.recipients[0]}"
    colleague = contract.build_recipient_id(harness.deployment.prefix, export.contract, stranger)
    of_colleague = Link(own.export, own.window, own.generation, colleague)
    return {
        "of a colleague": keys.sign(of_colleague, now=now, days=1),
        "that expired": keys.sign(own, now=now - 2 * DAY, days=1),
        "that was changed": token[:-4] + "AAAA",
    }


def _choose_export(harness: Harness) -> Export | None:
    """Return an export with links that has published a file with rows."""
    for export in harness.deployment.exports_with_links:
        if _list_files(harness, export):
            return export
    return None


def _find_link(harness: Harness, keys: KeyRing, export: Export, address: str) -> str:
    """Return the link of the newest mail to this recipient. Raises CheckFailed if there is none, or if
    another recipient has the same one.
    """
    links = _list_links(harness, keys, export, address)
    require(links, f"{export.contract} has published a file, and no mail to {address} has a link to it")
    for recipient in export.recipients:
        is_another = recipient != address
        others = _list_links(harness, keys, export, recipient) if is_another else []
        require(links[-1] not in others, f"{recipient} got the link of {address}")
    return links[-1]


def _list_links(harness: Harness, keys: KeyRing, export: Export, address: str) -> list[str]:
    """Return the links to files of the export in mails to this address, whoever sent them."""
    pattern = re.compile(rf"https?://\S+/{contract.LINK_PATH}/(\S+)")
    now = time.time()
    links = []
    for mail in harness.simulators.ask_aws("GET", "/mail"):
        if mail["to"] != address or mail["kind"] == "confirmation":
            continue
        for link in pattern.finditer(mail["body"]):
            if keys.verify(link[1], now=now).link.export == export.contract:
                links.append(link[0])
    return links


def _list_files(harness: Harness, export: Export) -> list[str]:
    bucket = harness.output("data", "LakeBucketName")
    keys = harness.objects(bucket, f"exports/{export.contract}/data/")
    return [key for key in keys if key.endswith((".csv", ".csv.gz"))]


def _read_published(harness: Harness, export: Export, link: Link) -> bytes:
    """Return the newest file of the window that the link opens."""
    bucket = harness.output("data", "LakeBucketName")
    keys = [key for key in _list_files(harness, export) if f"/data/{link.window}/" in key]
    return harness.content(bucket, max(keys))


def _ask(method: str, address: str, form: dict[str, str] | None = None) -> requests.Response:
    return requests.request(method, address, data=form, allow_redirects=False, timeout=_SECONDS)
