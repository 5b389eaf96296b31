"""`python -m dev.benchmarks.link_openings --count 10000 --hostile 1`: opens links, of which some are hostile.

The handler of the function runs in this process, and reads the bucket and the key of an embedded AWS over
HTTP. Writes dev/benchmarks/results/link-openings.md. Ends with code 1 if any outcome was wrong.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import io
import itertools
import json
import os
import platform
import random
import statistics
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import boto3
import jwt

from dev.docs import samples
from lambdas import contract
from lambdas.handlers import links as handler
from lambdas.links.ledger import Ledger, Revocation
from lambdas.shared.link_tokens import DAY, KeyRing, Link, identify_key, parse_keys
from lambdas.shared.redaction import Secret
from lambdas.shared.s3 import Objects
from simulators.aws import settings
from simulators.aws.server import EmbeddedAws

PAGE: Final = Path(__file__).resolve().parents[2] / "dev" / "benchmarks" / "results" / "link-openings.md"
BUCKET: Final = "link-openings"
SECRET: Final = "lakeferry-dev/links/signing_key"
AUDIENCE: Final = "lakeferry-dev"
EXPORT: Final = "weekly_sales"
_DAYS: Final = 14
_DOWNLOADS: Final = 20
_WINDOWS: Final = [f"2026-W{week:02}" for week in range(20, 40)]
_RECIPIENTS: Final = [contract.build_recipient_id(AUDIENCE, EXPORT, f"p{n}@example.com") for n in range(40)]
_LEFT: Final = contract.build_recipient_id(AUDIENCE, EXPORT, "left@example.com")
_REVOKED: Final = contract.build_recipient_id(AUDIENCE, EXPORT, "revoked@example.com")
_USED_UP: Final = contract.build_recipient_id(AUDIENCE, EXPORT, "used-up@example.com")
#: One page in so many openings is looked at first, and one file in so many is fetched.
_SHOWN: Final = 10
_FETCHED: Final = 100


@attrs.define
class Campaign:
    """`wrong` has what should not have happened. `uses` counts the downloads of each link. Times are in
    milliseconds.
    """

    keys: KeyRing
    chance: random.Random
    downloads: list[float] = attrs.Factory(list)
    pages: list[float] = attrs.Factory(list)
    refusals: list[float] = attrs.Factory(list)
    wrong: list[str] = attrs.Factory(list)
    hostile: Counter[str] = attrs.Factory(Counter)
    uses: Counter[str] = attrs.Factory(Counter)
    fetched: int = 0

    def draw_link(self) -> Link:
        return Link(EXPORT, self.chance.choice(_WINDOWS), 1, self.chance.choice(_RECIPIENTS))

    def open_honestly(self, number: int) -> None:
        """Open a link of a recipient. It must open until it is used up, and not afterwards."""
        link = self.draw_link()
        token = self.keys.sign(link, now=time.time(), days=_DAYS)
        opens = self.uses[link.name] < _DOWNLOADS
        if number % _SHOWN == 0:
            page = self._call("GET", token, self.pages)
            if (
                page["statusCode"] != (200 if opens else 403)
                or (f"_{link.window}.csv" in page["body"]) != opens
            ):
                self.wrong.append(f"the page of {link} has status {page['statusCode']}")
        answer = self._call("POST", token, self.downloads if opens else self.refusals)
        self.uses[link.name] += opens
        address = answer["headers"].get("Location", "")
        if answer["statusCode"] != (303 if opens else 403) or (f"_{link.window}.csv?" in address) != opens:
            self.wrong.append(f"the download of {link} has status {answer['statusCode']}")
        elif opens and number % _FETCHED == 0:
            self.fetched += 1
            content = urllib.request.urlopen(address).read()
            if content != _make_content(link.window):
                self.wrong.append(f"the file of {link} has other bytes")

    def open_with_hostility(self, kind: str) -> None:
        self.hostile[kind] += 1
        token = _HOSTILE[kind](self)
        for method in ("GET", "POST"):
            answer = self._call(method, token, self.refusals)
            if answer["statusCode"] != 403 or "Location" in answer["headers"]:
                self.wrong.append(f"a link, {kind}, has status {answer['statusCode']}")

    def sign(self, link: Link, **changed: Any) -> str:
        return (changed.pop("keys", None) or self.keys).sign(
            link, **{"now": time.time(), "days": _DAYS} | changed
        )

    def _call(self, method: str, token: str, times: list[float]) -> dict[str, Any]:
        body = base64.b64encode(b"file=0").decode()
        event = {
            "requestContext": {"requestId": "r", "http": {"method": method}},
            "pathParameters": {"token": token},
            **({"body": body, "isBase64Encoded": True} if method == "POST" else {}),
        }
        begun = time.perf_counter()
        answer = handler.open_link(event, None)  # type: ignore[arg-type]  # the context isn't used
        times.append((time.perf_counter() - begun) * 1000)
        return answer


def _change_claim(campaign: Campaign) -> str:
    """Give a recipient's token the window of another one."""
    head, body, signature = campaign.sign(campaign.draw_link()).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    text = json.dumps(claims | {"window": campaign.chance.choice(_WINDOWS), "generation": 2})
    changed = base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    return f"{head}.{changed}.{signature}"


def _change_character(campaign: Campaign) -> str:
    token = campaign.sign(campaign.draw_link())
    place = campaign.chance.randrange(len(token))
    return token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]


def _sign_with_nothing(campaign: Campaign) -> str:
    claims = jwt.decode(campaign.sign(campaign.draw_link()), options={"verify_signature": False})
    return jwt.encode(claims, "", algorithm="none", headers={"kid": identify_key(campaign.keys.current)})


def _forge(campaign: Campaign) -> str:
    """Sign with another key under the id of the right one."""
    claims = jwt.decode(campaign.sign(campaign.draw_link()), options={"verify_signature": False})
    headers = {"kid": identify_key(campaign.keys.current)}
    return jwt.encode(claims, "x" * 64, algorithm="HS256", headers=headers)


_HOSTILE: Final[dict[str, Callable[[Campaign], str]]] = {
    "with a character changed": _change_character,
    "with a claim changed": _change_claim,
    "without a signature": _sign_with_nothing,
    "signed by another key": _forge,
    "of another deployment": lambda campaign: campaign.sign(
        campaign.draw_link(), keys=attrs.evolve(campaign.keys, audience="lakeferry-prod")
    ),
    "by an unknown key": lambda campaign: campaign.sign(
        campaign.draw_link(), keys=KeyRing(AUDIENCE, Secret("y" * 64))
    ),
    "that expired": lambda campaign: campaign.sign(campaign.draw_link(), now=time.time() - (_DAYS + 1) * DAY),
    "that was revoked": lambda campaign: campaign.sign(Link(EXPORT, _WINDOWS[0], 1, _REVOKED)),
    "of somebody who left": lambda campaign: campaign.sign(Link(EXPORT, _WINDOWS[0], 1, _LEFT)),
    "that is used up": lambda campaign: campaign.sign(Link(EXPORT, _WINDOWS[0], 1, _USED_UP)),
    "to what is not published": lambda campaign: campaign.sign(
        attrs.evolve(campaign.draw_link(), generation=7)
    ),
    "to another export": lambda campaign: campaign.sign(
        attrs.evolve(campaign.draw_link(), export="weekly_sales_by_region")
    ),
    "that is noise": lambda campaign: urllib.parse.quote(campaign.chance.randbytes(200).decode("latin-1")),
}


def _make_content(window: str) -> bytes:
    return f"id\n{window}\n".encode()


def _publish(client: Any) -> None:
    """Write the manifests, files and settings of a deployment, and what was revoked and used up."""
    first = samples.manifests()[0]
    for window in _WINDOWS:
        manifest = json.loads(json.dumps(copy.deepcopy(first)).replace("2026-W46", window))
        put = {f"exports/{EXPORT}/manifests/{window}.json": json.dumps(manifest).encode()}
        put |= {file["key"]: _make_content(window) for file in manifest["files"]}
        for key, content in put.items():
            client.put_object(Bucket=BUCKET, Key=key, Body=content)
    export = {
        "export": EXPORT,
        "job": "job",
        "cron": "0 6 * * ? *",
        "zone": "UTC",
        "late_after_hours": 6,
        "recipient_ids": [*_RECIPIENTS, _REVOKED, _USED_UP],
        "link_downloads": _DOWNLOADS,
    }
    client.put_object(Bucket=BUCKET, Key="settings.json", Body=json.dumps({"exports": [export]}).encode())
    ledger = Ledger(Objects(client, BUCKET), "links")
    ledger.revoke(EXPORT, Revocation(int(time.time()) + DAY, "", _REVOKED))
    for _ in range(_DOWNLOADS):
        ledger.count(Link(EXPORT, _WINDOWS[0], 1, _USED_UP), "file", time.time(), _DOWNLOADS)


@contextlib.contextmanager
def _open_aws() -> Iterator[KeyRing]:
    with EmbeddedAws() as aws:
        os.environ.update(aws.environment(os.environ))
        client = boto3.client("s3")
        region = {"LocationConstraint": settings.REGION}
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=region)  # type: ignore[arg-type]
        _publish(client)
        fields = {contract.LINK_KEY_FIELD: "k" * 64}
        boto3.client("secretsmanager").create_secret(Name=SECRET, SecretString=json.dumps(fields))
        os.environ.update(
            {
                contract.LAKE_BUCKET: BUCKET,
                contract.LAKE_PREFIX: "exports",
                contract.LINKS_PREFIX: contract.LINKS,
                contract.SETTINGS: f"s3://{BUCKET}/settings.json",
                contract.LINK_SECRET: SECRET,
                contract.DEPLOYMENT: AUDIENCE,
            }
        )
        yield parse_keys(fields, AUDIENCE)


def _check_counts(campaign: Campaign) -> None:
    """Compare the downloads that were counted with those that were made."""
    ledger = Ledger(Objects(boto3.client("s3"), BUCKET), "links")
    counted = sum(downloads.count for _, downloads in ledger.list_downloads(EXPORT))
    made = campaign.uses.total() + _DOWNLOADS
    if counted != made:
        campaign.wrong.append(f"{counted} downloads were counted, and {made} were made")


def _write_page(campaign: Campaign, count: int, hostile: int, seconds: float) -> str:
    rows = [
        ("openings", f"{count:,}, {hostile:,} of them hostile, of {len(_HOSTILE)} kinds"),
        ("files fetched and compared", f"{campaign.fetched:,}"),
        ("**wrong outcomes**", f"**{len(campaign.wrong):,}**"),
    ]
    for request, times in (
        ("POST that leads to a file", campaign.downloads),
        ("GET of the page", campaign.pages),
        ("refusal", campaign.refusals),
    ):
        middle = statistics.median(times)
        high = statistics.quantiles(times, n=20)[-1]
        rows.append((f"{request}: p50 and p95 of the handler", f"{middle:.1f} ms and {high:.1f} ms"))
    rows.append(("wall time", f"{seconds:.0f} s"))
    return "\n".join(
        [
            "# Openings of links",
            "",
            f"`python -m dev.benchmarks.link_openings`, {datetime.now(UTC):%Y-%m-%d}, Python "
            f"{platform.python_version()}, {os.cpu_count()} cores.",
            "The function's handler in one process, with the embedded AWS on the same machine: a call of S3 "
            "takes other times in AWS.",
            "",
            "| | |",
            "|---|---|",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many openings")
    parser.add_argument("--hostile", type=float, default=1.0, help="how many of a hundred are hostile")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    hostile = round(options.count * options.hostile / 100)
    with _open_aws() as keys:
        campaign = Campaign(keys, random.Random(options.seed))
        hostile_numbers = set(campaign.chance.sample(range(options.count), hostile))
        kinds = itertools.cycle(_HOSTILE)
        log = io.StringIO()
        begun = time.perf_counter()
        with contextlib.redirect_stdout(log):
            for number in range(options.count):
                if number in hostile_numbers:
                    campaign.open_with_hostility(next(kinds))
                else:
                    campaign.open_honestly(number)
        seconds = time.perf_counter() - begun
        _check_counts(campaign)
    if "X-Amz-Signature" in log.getvalue() or "eyJ" in log.getvalue():
        campaign.wrong.append("the log has a token or a presigned URL")
    text = _write_page(campaign, options.count, hostile, seconds)
    print(text)
    if options.count >= 10_000:
        PAGE.write_text(text, encoding="utf-8")
    if campaign.wrong:
        raise SystemExit("\n".join(campaign.wrong[:20]))


if __name__ == "__main__":
    main()
