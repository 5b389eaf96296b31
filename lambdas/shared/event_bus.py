"""The account's default event bus of EventBridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from lambdas.shared import errors
from lambdas.shared.aws import translate_aws_errors
from lambdas.shared.errors import Transient


class EventsClient(Protocol):
    """What is used of boto3's client of EventBridge."""

    def put_events(self, *, Entries: list[dict[str, str]]) -> dict[str, Any]: ...  # noqa: N803


@attrs.frozen
class EventBus:
    client: EventsClient

    def put(self, source: str, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Put one event on the bus. Raises LakeferryError unless EventBridge accepted it."""
        doing = f"putting the event {detail_type} on the default event bus"
        with translate_aws_errors(doing):
            answer = self.client.put_events(
                Entries=[
                    {
                        "Source": source,
                        "DetailType": detail_type,
                        "Detail": json.dumps(detail, ensure_ascii=False),
                    }
                ]
            )
        # EventBridge answers 200 although it refused the entry.
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode", "")
            raise Transient(errors.AWS_REFUSED, f"{doing}: {code}")
