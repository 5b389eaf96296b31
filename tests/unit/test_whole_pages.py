"""Whole pages of mails, and everything else that a mail over SES consists of."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from lambdas.notifications import message
from lambdas.notifications.attachments import Attachment, read_attachments
from lambdas.notifications.mail_links import Links, PersonalLinks
from lambdas.notifications.outcome import ExportSettings, Facts, RunOutcome
from lambdas.notifications.page import compose_page
from lambdas.notifications.ses_mailer import SesMailer
from lambdas.shared.s3 import Objects
from lambdas.shared.ses import SesSender
from tests.support.notification_environment import BUCKET, MemoryBucket, Wire

LINKS = Links("lake-bucket", "eu-west-1", "exports")
RUN = "20261116T060009Z-5a0c9e12"
ZONE = "Europe/Berlin"
NEXT = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
PERSONAL = PersonalLinks(
    lambda window, generation: f"https://links.example.com/{window}&{generation}",
    datetime(2026, 11, 30, 6, 3, tzinfo=UTC),
)


def list_files(count):
    return [
        {"role": "data", "key": f"exports/sales/{number}.csv", "size": 1000 * number}
        for number in range(count)
    ]


def manifest(**changed):
    window = {
        "label": "2026-W46",
        "start": "2026-11-08T23:00:00+00:00",
        "end": "2026-11-15T23:00:00+00:00",
        "zone": ZONE,
    }
    return {"window": window, "generation": 1, "rows": {"rows": 5}, "files": list_files(1)} | changed


def facts(**given):
    return Facts(**{"title": "Sales & more", "owner": "the <team>", "zone": ZONE, "next_run": NEXT, **given})


def news(state, **given):
    return RunOutcome("sales", given.pop("window", "2026-W46"), state, "identity", RUN, **given)


def compose(told, state=None, *, personal=None, **given):
    """Return the lines of the page's body."""
    page = compose_page(told, state or told.state, facts(**given), LINKS, personal)
    head, _, rest = page.partition("<body><main>\n")
    assert "<title>Sales &amp; more</title>" in head
    body, end = rest.split("\n</main>")
    assert end == "</body></html>\n"
    return body.split("\n")


def list_item(number):
    size = f"{number}.0 kB"
    page = "https://eu-west-1.console.aws.amazon.com/s3/object/lake-bucket"
    url = f"{page}?region=eu-west-1&amp;prefix=exports/sales/{number}.csv"
    command = f"aws s3 cp &#x27;s3://lake-bucket/exports/sales/{number}.csv&#x27; ."
    return f'<li><a href="{url}">{number}.csv</a>, {size}<br><code>{command}</code></li>'


HOW = f'<p class="quiet">{message.HOW_TO_DOWNLOAD}</p>'
CLOSING = [
    '<p class="quiet">The window is from 09 Nov 2026 00:00 Europe/Berlin to before '
    "16 Nov 2026 00:00 Europe/Berlin.</p>",
    f'<p class="quiet">Run: {RUN}</p>',
    '<p class="quiet">Questions: the &lt;team&gt;</p>',
]
NEXT_TRY = '<p class="quiet">The next try is on 23 Nov 2026 07:00 Europe/Berlin.</p>'


def test_the_page_of_a_window_with_a_file():
    figures = [
        {"column": "a", "title": "A & B", "unit": "<EUR>", "total": "1100"},
        {"column": "b", "title": "B", "unit": None, "total": "-1234.5"},
        {"column": "c", "title": "C", "unit": "", "total": "200.1"},
        {"column": "d", "title": "D", "unit": "", "total": "1"},
    ]
    check = {
        "id": "c",
        "severity": "warn",
        "message": "Odd > even.",
        "failed": 2,
        "of": "rows",
        "passed": False,
    }
    document = manifest(generation=2, rows={"rows": 12345}, headline=figures, checks=[check], notes=["N & M"])
    before = {"window": "2026-W45 & so", "totals": {"a": "1000", "b": "1000", "c": "200"}}
    lines = compose(
        news("complete", document=document),
        "recovered",
        manifest=document | {"previous_window": before},
        attached=[Attachment("a&b.csv", b""), Attachment("c.csv", b"")],
    )
    label = "2026-W45 &amp; so"
    assert lines == [
        "<h1>Sales &amp; more, 2026-W46</h1>",
        '<p class="state">recovered</p>',
        "<p>The earlier problem is solved. This replaces the notice about it.</p>",
        "<p>The file is ready.</p>",
        "<p>Attached: a&amp;b.csv, c.csv.</p>",
        '<p class="number"><b>12,345</b>rows</p>',
        '<p class="number"><b>1,100 &lt;EUR&gt;</b>A &amp; B<br>▲ +10.0 % compared with ' + label + "</p>",
        f'<p class="number"><b>-1,234.5</b>B<br>▼ −223.4 % compared with {label}</p>',
        f'<p class="number"><b>200.1</b>C<br>= unchanged from {label}</p>',
        "<p>This is version 2 of the file; use it instead of the earlier one.</p>",
        "<h2>Checks and notes</h2>",
        "<ul><li>Check: Odd &gt; even. (2 rows)</li><li>Note: N &amp; M</li></ul>",
        "<h2>Files</h2>",
        HOW,
        f"<ul>{list_item(0)}</ul>",
        *CLOSING,
    ]


def test_the_page_of_a_window_without_a_file():
    last = manifest(window={"label": "2026-W<45>"}, files=list_files(2))
    told = news("blocked", code="EXP-CHECK-BLOCKED", reason="Odd > even.")
    assert compose(told, last=last) == [
        "<h1>Sales &amp; more, 2026-W46</h1>",
        '<p class="state">blocked</p>',
        "<p>There is no new file: it did not pass its checks, so it was not published.</p>",
        "<p>Why: Odd &gt; even.</p>",
        "<h2>The last file with rows is of 2026-W&lt;45&gt;</h2>",
        "<h2>Files</h2>",
        HOW,
        f"<ul>{list_item(0)}{list_item(1)}</ul>",
        NEXT_TRY,
        *CLOSING[1:],
    ]


def test_the_page_of_a_file_without_rows_names_the_last_window_with_rows():
    document = manifest(rows={"rows": 0}, headline=[])
    lines = compose(news("empty", document=document), last=manifest(window={"label": "2026-W<44>"}))
    assert lines[2:4] == ["<p>There were no rows in this window.</p>", '<p class="number"><b>0</b>rows</p>']
    assert '<p class="quiet">The last window with rows is 2026-W&lt;44&gt;.</p>' in lines


def test_the_page_of_a_run():
    assert compose(news("failed", window="run", code="EXP-DIED"), owner="", next_run=None) == [
        "<h1>Sales &amp; more</h1>",
        '<p class="state">failed</p>',
        "<p>The file is delayed. The team that runs the export has been notified.</p>",
        CLOSING[1],
    ]


@pytest.mark.parametrize(("count", "shown", "more"), [(0, 0, True), (6, 6, False), (7, 6, True)])
def test_a_page_names_six_files_and_says_where_the_others_are(count, shown, more):
    last = manifest(files=list_files(count))
    lines = compose(news("failed"), last=last)
    begins = lines.index(HOW)
    assert lines[begins + 1] == f"<ul>{''.join(list_item(number) for number in range(shown))}</ul>"
    others = "<p>All files are in bucket lake-bucket; the window&#x27;s manifest has their keys.</p>"
    assert lines[begins + 2 :] == [*([others] if more else []), NEXT_TRY, *CLOSING[1:]]


def test_a_page_with_a_link_of_its_reader_names_all_files_and_no_address():
    document = manifest(generation=3, files=list_files(8))
    lines = compose(news("complete", document=document), personal=PERSONAL)
    names = "".join(f"<li>{number}.csv, {number}.0 kB</li>" for number in range(8))
    assert lines[lines.index('<p class="number"><b>5</b>rows</p>') + 2 : -2] == [
        '<p><a class="button" href="https://links.example.com/2026-W46&amp;3">Open the files</a></p>',
        '<p class="quiet">The link is yours, and works until 30 Nov 2026 07:03 Europe/Berlin.</p>',
        f"<ul>{names}</ul>",
    ]


def test_a_page_without_a_file_has_a_link_to_the_last_one():
    last = manifest(window={"label": "2026-W40"}, generation=4)
    lines = compose(news("failed"), last=last, personal=PERSONAL)
    assert '<p><a class="button" href="https://links.example.com/2026-W40&amp;4">Open the files</a></p>' in (
        lines
    )


@pytest.mark.parametrize(
    ("total", "says"),
    [
        ("1000.4", "= unchanged from 2026-W45"),
        ("1000.6", "▲ +0.1 % compared with 2026-W45"),
        ("999.6", "= unchanged from 2026-W45"),
        ("999.4", "▼ −0.1 % compared with 2026-W45"),
        ("99000", "▲ +9,800.0 % compared with 2026-W45"),
        ("many", None),
    ],
)
def test_a_change_is_rounded_to_a_tenth_of_a_percent(total, says):
    figure = {"column": "a", "title": "A", "unit": None, "total": total}
    document = manifest(headline=[figure])
    before = {"window": "2026-W45", "totals": {"a": "1000"}}
    told = news("complete", document=document)
    lines = compose(told, manifest=document | {"previous_window": before})
    ending = f"A<br>{says}</p>" if says else "<b>many</b>A</p>"
    assert [line.endswith(ending) for line in lines if line.startswith('<p class="number">')][1]


@pytest.mark.parametrize(
    ("number", "change"),
    [
        ({"column": "a"}, "+10"),
        ({"column": "a", "unit": "EUR"}, "+10"),
        ({"column": "a", "unit": "EUR", "per": "currency"}, "-50"),
        ({"column": "a", "unit": None, "per": "currency"}, "+120"),
        ({"column": "b"}, None),
        ({"column": "zero"}, None),
        ({"column": "odd"}, None),
        ({"column": "a", "total": "9" * 30}, None),
    ],
)
def test_a_change_is_that_of_the_same_figure(number, change):
    totals = {"a": "100", "a EUR": "220", "a ": "50", "zero": "0", "odd": "many"}
    found = facts(manifest={"previous_window": {"window": "2026-W45", "totals": totals}}).change(
        {"total": 110, **number}
    )
    assert (found and (f"{found[0]:+.0f}", found[1])) == (change and (change, "2026-W45"))
    assert facts(manifest={"previous_window": None}).change({"total": 110, **number}) is None
    assert facts().change({"total": 110, **number}) is None


# --- the parts of a mail over SES


class Outbox:
    def __init__(self):
        self.sent = []

    def send_email(self, **asked):
        self.sent.append(asked)


def test_a_mail_has_its_text_its_page_and_its_files_in_this_order():
    outbox = Outbox()
    attachments = (Attachment("sales.csv", b"a,b\r\n"), Attachment("sales.bin", b"\x00"))
    mail = message.Mail("", "[Sales] complete", "The text ä.\n", "<p>The page ä.</p>\n", attachments)
    mailer = SesMailer(SesSender(outbox, "from@example.com", "the-set"))
    export = ExportSettings("sales", "job", "", ZONE, recipients=("1", "2"), addresses=("a@x.de", "b@x.de"))
    mailer.send(mail, export, "2")
    (asked,) = outbox.sent
    assert asked["Destination"] == {"ToAddresses": ["b@x.de"]}
    assert asked["EmailTags"] == [{"Name": "export", "Value": "sales"}]
    raw = asked["Content"]["Raw"]["Data"].decode()
    assert "Subject: [Sales] complete\r\n" in raw
    assert "Auto-Submitted: auto-generated\r\n" in raw
    assert re.findall(r"Content-Type: ([a-z/-]+)", raw) == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "text/csv",
        "application/octet-stream",
    ]
    assert re.findall(r"Content-Transfer-Encoding: (\S+)", raw)[:2] == ["quoted-printable"] * 2
    assert re.findall(r'filename="(\S+)"', raw) == ["sales.csv", "sales.bin"]
    assert "The text =C3=A4.\r\n" in raw
    assert "<p>The page =C3=A4.</p>\r\n" in raw


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "text/csv"),
        ("a.csv.gz", "application/gzip"),
        ("a.jsonl", "application/jsonl"),
        ("a.parquet", "application/vnd.apache.parquet"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.CSV", "application/octet-stream"),
        ("csv", "application/octet-stream"),
    ],
)
def test_the_type_of_a_file_s_content(name, kind):
    assert "/".join(Attachment(name, b"").type) == kind


def test_a_file_without_rows_is_no_attachment_and_does_not_count():
    bucket = MemoryBucket(Wire())
    files = [{"role": "report", "key": "exports/report.html", "size": 10**9, "sha256": ""}]
    assert read_attachments(Objects(bucket, BUCKET), files, 1) == ()
    assert read_attachments(Objects(bucket, BUCKET), [], 0) == ()
    assert bucket.wire.calls == 0


@pytest.mark.parametrize(
    ("bucket", "region", "is_valid"),
    [
        ("abc", "eu-west-1", True),
        ("a" * 63, "us-gov-west-1", True),
        ("ab", "eu-west-1", False),
        ("a" * 64, "eu-west-1", False),
        ("-ab", "eu-west-1", False),
        ("ab-", "eu-west-1", False),
        ("Abc", "eu-west-1", False),
        ("abc/x", "eu-west-1", False),
        ("abc", "eu-west", False),
        ("abc", "eu-1", False),
        ("abc", "eu-west-1.evil.example", False),
        ("abc", "", False),
    ],
)
def test_links_lead_to_a_bucket_in_a_region_only(bucket, region, is_valid):
    if is_valid:
        assert Links(bucket, region, "exports").bucket == bucket
        return
    with pytest.raises(ValueError, match="no bucket or no region"):
        Links(bucket, region, "exports")


def test_links_quote_what_is_no_plain_name():
    hostile = "a b'/c?d#e&f=g:h"
    assert LINKS.page(hostile).endswith("&prefix=a%20b%27/c%3Fd%23e%26f%3Dg%3Ah")
    assert LINKS.command(hostile) == "aws s3 cp 's3://lake-bucket/a%20b%27/c%3Fd%23e%26f=g:h' ."
    assert LINKS.run("a/b", "c d").endswith("/gluestudio/home?region=eu-west-1#/job/a%2Fb/run/c%20d")
    assert LINKS.record("sales", "a b") == "s3://lake-bucket/exports/sales/runs/a%20b.json"
