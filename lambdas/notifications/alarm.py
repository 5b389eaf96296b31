"""What those who run the deployment read when an export is late, blocked, failed or well again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from lambdas.notifications import message
from lambdas.notifications import outcome as states
from lambdas.notifications.facts import Facts, Told
from lambdas.notifications.links import Links
from lambdas.notifications.message import Mail
from lambdas.notifications.outcome import News
from lambdas.notifications.text import foreign, line

#: What engineers hear of; the rest is none of their business.
HEARD: Final = (states.LATE, *states.TROUBLE, states.RECOVERED)


@attrs.frozen
class Run:
    """The job's run that the news comes from, "" where nobody knows it, and how Glue says it ended."""

    job_run_id: str = ""
    state: str = ""


def compose(topic: str, news: News, state: str, facts: Facts, *, links: Links, told: Told, run: Run) -> Mail:
    words = [*_head(news, state, told), "", *_where(news, links, told, run), *_again(news, told)]
    return Mail(topic, message.headline(news, state, facts), "\n".join(words) + "\n")


def _head(news: News, state: str, told: Told) -> Iterator[str]:
    yield f"Export {line(told.name)}, {'the run' if news.place == states.RUN else 'window ' + foreign(news.place)}: {state}."
    if news.code:
        yield f"{line(news.code)}  {foreign(news.reason)}"
    elif news.reason:
        yield foreign(news.reason)
    if news.remedy:
        yield f"What to do: {foreign(news.remedy)}"


def _where(news: News, links: Links, told: Told, run: Run) -> Iterator[str]:
    yield f"Run's record: {links.record(told.name, line(news.run_id))}"
    yield f"Job's runs and logs: {links.run(told.job, run.job_run_id)}"
    if run.state:
        yield f"State of the job: {line(run.state)}"


def _again(news: News, told: Told) -> Iterator[str]:
    if not news.code:
        yield "Nothing has to be done."
        return
    yield f"Code explained: docs/reference/errors.md#{line(news.code).lower()}"
    yield f"Run again: aws glue start-job-run --job-name {line(told.job)}"
