"""Each published generation of a window becomes at least one event, and a repeated event of Glue none."""

from __future__ import annotations

import json

import pytest

from dev.docs import samples
from lakeferry.local.bootstrap import ROOT
from lambdas import contract
from lambdas.notifications import announcement
from lambdas.notifications import errors as notification_errors
from lambdas.shared.errors import LakeferryError
from tests.support.notification_environment import (
    BUCKET,
    FAULTS,
    Killed,
    NotificationEnvironment,
    blocked,
    incomplete,
    published,
    record,
)

RUN = "20261116T060009Z-5a0c9e12"

CONSOLE = "https://eu-west-1.console.aws.amazon.com"


def manifest(**changed):
    return samples.manifests()[0] | changed


def announced(*windows, manifests=None, code=""):
    env = NotificationEnvironment()
    env.bus.code = code
    for document in [manifest()] if manifests is None else manifests:
        env.publish(document)
    env.run(record(*windows))
    env.deliver()
    return env


def test_an_event_says_what_was_published():
    env = announced(published())
    ((source, detail_type, detail),) = env.bus.events
    assert (source, detail_type) == (contract.EVENT_SOURCE, contract.EVENT_TYPE)
    data = manifest()["files"][0]
    assert detail == {
        "version": "1",
        "id": f"lakeferry-dev/weekly_sales/2026-W46/1/{RUN}",
        "project": "lakeferry",
        "stage": "dev",
        "export": "weekly_sales",
        "title": manifest()["title"],
        "state": "complete",
        "text": "The file is ready. 15,249 rows. Line total: 574,011.92 EUR (+0.0 % against 2026-W45). "
        "Line total: 568,534.46 USD (+0.0 % against 2026-W45). "
        "Quantity: 31,870 pieces (+0.0 % against 2026-W45). "
        "Note: 2 texts were longer than 32,767 characters, Excel's limit, and cut to it.",
        "window": {
            "label": "2026-W46",
            "start": "2026-11-09T00:00:00+01:00",
            "end": "2026-11-16T00:00:00+01:00",
            "zone": "Europe/Berlin",
        },
        "generation": 1,
        "rows": 15249,
        "headline": [
            number("Line total", "EUR", "574011.92"),
            number("Line total", "USD", "568534.46"),
            number("Quantity", "pieces", "31870"),
        ],
        "checks": [],
        "notes": manifest()["notes"],
        "run_id": RUN,
        "published_at": manifest()["published_at"],
        "files": [
            {
                "role": "data",
                "bucket": BUCKET,
                "key": data["key"],
                "size": data["size"],
                "sha256": data["sha256"],
                "url": f"{CONSOLE}/s3/object/lake-bucket?region=eu-west-1&prefix={data['key']}",
            }
        ],
        "files_left_out": 0,
    }


def number(title, unit, total):
    return {
        "title": title,
        "unit": unit,
        "total": total,
        "change_percent": "+0.0",
        "compared_with": "2026-W45",
    }


def test_the_page_documents_every_field():
    """docs/how-to/send-news.md shows the detail of this event."""
    (detail,) = announced(published()).bus.details()
    page = (ROOT / "docs/how-to/send-news.md").read_text()
    shown = json.loads(page.split("```json", 2)[1].split("```", 1)[0])["detail"]
    assert list(shown) == list(detail)
    for name in ("window", "headline", "files"):
        first = shown[name][0] if isinstance(shown[name], list) else shown[name]
        written = detail[name][0] if isinstance(detail[name], list) else detail[name]
        assert list(first) == list(written), name


def test_a_number_without_a_window_before_has_no_change():
    (detail,) = announced(published(), manifests=[manifest(previous_window=None)]).bus.details()
    assert {figure["change_percent"] for figure in detail["headline"]} == {None}
    assert {figure["compared_with"] for figure in detail["headline"]} == {None}


def test_an_event_that_comes_twice_is_announced_once():
    env = announced(published())
    for _ in range(2):
        env.deliver()
    assert len(env.bus.events) == 1


def test_a_new_generation_is_announced_with_an_id_of_its_own():
    env = announced(published())
    later = "20261123T060009Z-77aa9e12"
    env.publish(manifest(generation=2, run_id=later))
    env.run(record(published(generation=2), weeks=1, mark="77aa9e12"), 2)
    env.deliver(2)
    ids = [detail["id"] for detail in env.bus.details()]
    assert ids == [
        f"lakeferry-dev/weekly_sales/2026-W46/1/{RUN}",
        f"lakeferry-dev/weekly_sales/2026-W46/2/{later}",
    ]


def test_a_generation_that_was_replaced_is_not_announced():
    """The run that replaced it announces its own."""
    assert announced(published(), manifests=[manifest(generation=2)]).bus.events == []
    assert announced(published(), manifests=[]).bus.events == []


@pytest.mark.parametrize(
    "window", [blocked(), incomplete(), {"window": "2026-W46", "state": "skipped", "reason": None}]
)
def test_what_was_not_published_is_not_announced(window):
    assert announced(window).bus.events == []


@pytest.mark.parametrize("status", ["empty", "incomplete"])
def test_the_state_of_a_published_window_is_announced(status):
    (detail,) = announced(published(status=status)).bus.details()
    assert detail["state"] == status


def test_texts_are_cleaned_as_in_mails():
    check = {
        "id": "has_seller",
        "severity": "warn",
        "message": "Ask jane.doe@example.com",
        "failed": 3,
        "of": "rows",
        "passed": False,
    }
    changed = manifest(title="Sales\nof jane.doe@example.com", notes=["Call +49 170 1234567"], checks=[check])
    env = announced(published(), manifests=[changed])
    (detail,) = env.bus.details()
    assert detail["checks"] == [
        {"id": "has_seller", "severity": "warn", "message": "Ask [hidden]", "rows": 3}
    ]
    assert detail["notes"] == ["Call [hidden]"]
    assert "jane.doe" not in json.dumps(detail)


def test_no_text_has_a_character_that_json_escapes():
    changed = manifest(title='Sales of "North" \\ South', notes=['a "note"\nof two lines'])
    env = announced(published(), manifests=[changed])
    (detail,) = env.bus.details()
    assert detail["notes"] == ["a 'note'"]
    assert not {'"', "\\", "\n"} & set(detail["title"] + detail["text"])


def test_long_lists_are_cut_so_that_eventbridge_accepts_the_event():
    file = manifest()["files"][0]
    many = [file | {"key": f"{file['key']}-{number}"} for number in range(900)]
    sentences = ["n" * 400] * 900
    (detail,) = announced(published(), manifests=[manifest(files=many, notes=sentences)]).bus.details()
    assert (len(detail["files"]), detail["files_left_out"]) == (
        announcement.MAX_FILES,
        900 - announcement.MAX_FILES,
    )
    assert len(json.dumps(detail).encode()) < 256_000


def test_an_entry_that_eventbridge_refuses_fails_the_invocation_and_is_put_again():
    env = NotificationEnvironment()
    env.publish(manifest())
    env.run(record(published()))
    env.bus.code = "NotAuthorizedForDetailTypeException"
    with pytest.raises(LakeferryError) as raised:
        env.deliver()
    assert raised.value.kind is notification_errors.EVENT_NOT_SENT
    assert "NotAuthorizedForDetailTypeException" in str(raised.value)
    assert len(env.topics.mails) == 1
    env.bus.code = ""
    env.deliver()
    assert (len(env.topics.mails), len(env.bus.events)) == (1, 1)


def list_calls():
    env = NotificationEnvironment()
    env.publish(manifest())
    env.run(record(published()))
    env.deliver()
    return env.wire.names


@pytest.mark.parametrize("fault", FAULTS)
def test_each_generation_is_announced_despite_any_fault(fault):
    """It is announced twice only if the answer, or the write after it, was lost."""
    calls = list_calls()
    put = calls.index("PutEvents")
    for at, name in enumerate(calls):
        env = NotificationEnvironment()
        env.publish(manifest())
        env.run(record(published()))
        env.wire.faults[at] = fault
        for _ in range(3):
            try:
                env.deliver(invocation="the same")
                break
            except (LakeferryError, Killed):
                continue
        ids = {detail["id"] for detail in env.bus.details()}
        assert ids == {f"lakeferry-dev/weekly_sales/2026-W46/1/{RUN}"}, (at, name)
        may_be_twice = (at == put and fault in {"no answer", "killed after"}) or (
            at == put + 1 and fault in {"refused", "not sent", "killed before"}
        )
        assert len(env.bus.events) <= 1 + may_be_twice, (at, name)
