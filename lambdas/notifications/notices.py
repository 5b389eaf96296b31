"""What has been told about a window, and what is to be: a document that changes in one step, so each thing is told once.

{"run": the latest run that told something, "trouble": the state that its recipients know of, or "",
 "told": [identities since then], "mails": [{"id", "topic", "subject", "body", "tries", "claim", "sent", "given_up"}]}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from lambdas.notifications import outcome as states
from lambdas.notifications.message import Mail
from lambdas.notifications.outcome import News

Document = dict[str, Any]

NEW: Final[Document] = {"run": "", "trouble": "", "told": [], "mails": []}
#: Sent mails that are remembered; their texts are not.
_REMEMBERED: Final = 30


def due(document: Document, news: News) -> str | None:
    """The state that is to be told: that of the news, or that all is well again. None where it is known already, or was
    overtaken by a later run's."""
    if news.run_id < document["run"]:
        return None
    if not news.is_bad and document["trouble"]:
        return states.RECOVERED
    if news.identity in document["told"] or news.state == states.FINE:
        return None
    return news.state


def noted(document: Document, news: News, mails: Iterable[Mail]) -> Document:
    """The document with `mails` to be sent. What is good ends what was told of trouble before."""
    if news.run_id < document["run"]:
        return document
    trouble = news.state if news.state in states.TROUBLE else ""
    before = document["told"] if news.is_bad else []
    told = [*before, *([] if news.identity in before else [news.identity])]
    new = [_waiting(mail, f"{news.run_id}/{number}") for number, mail in enumerate(mails)]
    kept = [_short(mail) for mail in document["mails"]][-_REMEMBERED:]
    return {
        "run": news.run_id,
        "trouble": trouble or (document["trouble"] if news.is_bad else ""),
        "told": told,
        "mails": [*kept, *new],
    }


def waiting(document: Document) -> list[Document]:
    """Mails that may still have to be sent, in order."""
    return [mail for mail in document["mails"] if not mail["sent"] and not mail["given_up"]]


def changed(document: Document, mail_id: str, **values: Any) -> Document:
    mails = [{**mail, **values} if mail["id"] == mail_id else mail for mail in document["mails"]]
    return {**document, "mails": mails}


def _waiting(mail: Mail, mail_id: str) -> Document:
    return {"id": mail_id, **attrs.asdict(mail), "tries": 0, "claim": None, "sent": None, "given_up": False}


def _short(mail: Document) -> Document:
    return mail if not mail["sent"] else {**mail, "body": ""}
