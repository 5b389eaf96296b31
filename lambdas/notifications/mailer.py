"""Send the mails about a run of an export. Guarantees:

- Each window and addressee has one marker, a small object in S3 that records the last news that the
  addressee got about the window. An addressee is an audience, or one recipient where each gets a mail of
  their own. The marker is written conditionally before a mail is published (`If-None-Match: *`, or
  `If-Match` with the ETag of the marker that was read) and again after SNS or SES accepted the mail. So an
  event that is delivered twice, even at the same time, causes one mail.
- If the service certainly did not accept the mail, the marker is restored and the invocation fails. Lambda
  retries it twice; then the event goes to the dead-letter queue, which has an alarm.
- If the invocation ends between the two writes, or if the service's answer or the second write is lost,
  Lambda's retry of the same invocation, which has the same request id, sends the mail again. So a mail may
  arrive twice; both copies have the id of the same run.
- A mail is lost only if all three attempts of an invocation end between the two writes. The event is then in
  the dead-letter queue too, and no other invocation sends this mail until somebody deletes the marker, whose
  key is in MAIL-BUSY.
- A mail that fails for one recipient is repeated to that recipient only. When all recipients have theirs, the
  marker of the audience says so. A recipient without a later marker begins with it: somebody who joins the
  list gets no old news, and nobody gets news again when mails of their own begin or end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import attrs
import cattrs

from lambdas import contract
from lambdas.notifications import errors as notification_errors
from lambdas.notifications import message, outcome
from lambdas.notifications.attachments import Attachment, read_attachments
from lambdas.notifications.mail_links import Links, PersonalLinks
from lambdas.notifications.message import Mail
from lambdas.notifications.outcome import ExportSettings, RunOutcome
from lambdas.notifications.page import compose_page
from lambdas.notifications.ses_mailer import SesMailer
from lambdas.shared.clock import Clock
from lambdas.shared.errors import InProgress, LakeferryError, Refused, Transient
from lambdas.shared.http import NotSent, ResponseLost
from lambdas.shared.link_tokens import KeyRing, Link
from lambdas.shared.log import Log
from lambdas.shared.s3 import Objects
from lambdas.shared.sns import SnsTopics

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

#: The people who get the files, and those who run the deployment.
RECIPIENTS: Final = "recipients"
ENGINEERS: Final = "engineers"
#: Glue's state of a successful job run.
SUCCEEDED: Final = "SUCCEEDED"


@attrs.frozen
class Marker:
    """The last news that one addressee got about a window.

    `run` is the newest run that was processed. `failure` is the last state in FAILURE_STATES, until good news
    ends it, or "". `identities` are those of the news since the last news that wasn't bad, including it.
    `sending` has the run and the invocation of a mail that is being sent.
    """

    run: str = ""
    failure: str = ""
    identities: list[str] = attrs.Factory(list)
    sending: str = ""

    def pending_state(self, news: RunOutcome) -> str | None:
        """Return the state for the mail: the news's, or RECOVERED.

        None if it was sent before or a later run was processed.
        """
        if news.run_id < self.run:
            return None
        if not news.is_bad and self.failure:
            return outcome.RECOVERED
        if news.identity in self.identities or news.state == outcome.FINE:
            return None
        return news.state

    def after(self, news: RunOutcome) -> Marker:
        """Return the marker for the time after sending the news. Good news ends an earlier failure."""
        if news.run_id < self.run:
            return self
        if not news.is_bad:
            return Marker(run=news.run_id, identities=[news.identity])
        failure = news.state if news.state in outcome.FAILURE_STATES else self.failure
        return Marker(news.run_id, failure, list(dict.fromkeys([*self.identities, news.identity])))


@attrs.frozen
class Addressee:
    """Who gets a mail: an audience, or the one of the recipients that `recipient` is the id of."""

    audience: str
    recipient: str = ""

    @property
    def marker(self) -> str:
        """Return the name of the marker, which is unique in a window."""
        return contract.name_recipient_marker(self.recipient) if self.recipient else self.audience

    def gets(self, state: str, export: ExportSettings) -> bool:
        """Return whether there is a mail of this state for the addressee."""
        if self.audience == ENGINEERS:
            return state in message.FOR_ENGINEERS
        return bool(self.recipient) or bool(export.topic and not export.recipients)


@attrs.frozen
class LinkSigner:
    """Signs links that open at `url`."""

    keys: KeyRing
    url: str
    clock: Clock

    def open_for(self, export: ExportSettings, recipient: str) -> PersonalLinks:
        """Return the links of one recipient. All of them are signed at the present time."""
        now = self.clock.time()

        def sign(window: str, generation: int) -> str:
            link = Link(export.name, window, generation, recipient)
            token = self.keys.sign(link, now=now, days=export.link_days)
            return f"{self.url}/{contract.LINK_PATH}/{token}"

        return PersonalLinks(sign, datetime.fromtimestamp(now, UTC) + timedelta(days=export.link_days))


@attrs.frozen
class Notifier:
    """`notices` is the S3 prefix of the markers that record which mails were sent. `invocation` is Lambda's
    request id, which stays the same when Lambda tries an invocation again. `announce` puts an event about a
    published window on the event bus."""

    objects: Objects
    topics: SnsTopics
    glue: GlueClient
    clock: Clock
    log: Log
    exports: Mapping[str, ExportSettings]
    alarm_topic: str
    links: Links
    notices: str
    invocation: str
    announce: Callable[[ExportSettings, RunOutcome], None]
    signer: LinkSigner | None = None
    ses_mailer: SesMailer | None = None

    def job_ended(self, job: str, job_run_id: str, state: str) -> None:
        """Send the mails about a job run that has ended, and announce what it published.

        A mail or an event that can't be sent doesn't prevent the others. Raises LakeferryError after all were
        tried.
        """
        export = next((export for export in self.exports.values() if export.job == job), None)
        if export is None:
            raise LakeferryError(notification_errors.EVENT, f"job {job} is not one of this deployment")
        folder = f"{self.links.prefix}/{export.name}/runs/"
        run = outcome.get_job_run(self.glue, job, job_run_id)
        record = outcome.find_record(self.objects, folder, run)
        if record is None and state == SUCCEEDED:
            raise LakeferryError(notification_errors.NO_RECORD, f"run {job_run_id} of {job}, below {folder}")
        if record:
            all_news = outcome.read_record(record)
        else:
            all_news = [outcome.describe_dead_run(export.name, run.run_id, run.message)]
        wrong: list[LakeferryError] = []
        for news in all_news:
            wrong += self._tell_recipients(export, news, (job_run_id, state))
            if self.alarm_topic:
                wrong += self._try_to_notify(Addressee(ENGINEERS), export, news, (job_run_id, state))
        # After all mails: a bus that does not answer must not delay them.
        for news in all_news:
            try:
                self.announce(export, news)
            except LakeferryError as error:
                self.log.error(
                    "not announced",
                    window=news.window,
                    run=news.run_id,
                    code=error.kind.code,
                    reason=str(error),
                )
                wrong.append(error)
        if wrong:
            raise next((error for error in wrong if not isinstance(error, Transient)), wrong[0])

    def _tell_recipients(
        self, export: ExportSettings, news: RunOutcome, job_run: tuple[str, str]
    ) -> list[LakeferryError]:
        """Return what prevented mails."""
        wrong: list[LakeferryError] = []
        for recipient in export.recipients:
            wrong += self._try_to_notify(Addressee(RECIPIENTS, recipient), export, news, job_run)
        if wrong:
            return wrong
        return self._try_to_notify(Addressee(RECIPIENTS), export, news, job_run)

    def _try_to_notify(
        self, addressee: Addressee, export: ExportSettings, news: RunOutcome, job_run: tuple[str, str]
    ) -> list[LakeferryError]:
        """Return what prevented the mail, if it was due."""
        key = self._build_key(addressee, news)
        try:
            self._notify(key, addressee, export, news, job_run)
        except LakeferryError as error:
            self.log.error("not sent", marker=key, run=news.run_id, code=error.kind.code, reason=str(error))
            return [error]
        return []

    def _build_key(self, addressee: Addressee, news: RunOutcome) -> str:
        return f"{self.notices}/{news.export}/{news.window}/{addressee.marker}.json"

    def _notify(
        self,
        key: str,
        addressee: Addressee,
        export: ExportSettings,
        news: RunOutcome,
        job_run: tuple[str, str],
    ) -> None:
        """Send one addressee a mail if one is due. Raises LakeferryError."""
        marker, etag = self._read(key)
        if addressee.recipient:
            marker = self._begin_with_audience(marker, news)
        state = marker.pending_state(news)
        after = marker.after(news)
        if state is None or not addressee.gets(state, export):
            if after != marker:
                self._write(key, after, etag)
            return
        sending = f"{news.run_id} {self.invocation}"
        if marker.sending.startswith(f"{news.run_id} ") and marker.sending != sending:
            raise InProgress(notification_errors.BUSY, f"s3://{self.objects.bucket}/{key}: {marker.sending}")
        mail = self._compose_mail(addressee, export, news, state, job_run)
        etag = self._write(key, attrs.evolve(marker, sending=sending), etag)
        try:
            self._send(mail, export, addressee)
        except (NotSent, Refused) as error:
            self._write(key, attrs.evolve(marker, sending=""), etag)
            raise Transient(notification_errors.NOT_SENT, error.what) from None
        except ResponseLost as error:
            raise Transient(notification_errors.UNCERTAIN, error.what) from None
        self._write(key, after, etag)
        self.log.info("sent", marker=key, subject=mail.subject)

    def _send(self, mail: Mail, export: ExportSettings, addressee: Addressee) -> None:
        """Send a mail over SNS, or over SES if the deployment has it and the mail is for a recipient."""
        if self.ses_mailer and addressee.audience == RECIPIENTS:
            self.ses_mailer.send(mail, export, addressee.recipient)
        else:
            self.topics.publish(mail.topic, mail.subject, mail.body, addressee.recipient)

    def _begin_with_audience(self, marker: Marker, news: RunOutcome) -> Marker:
        """Return what a recipient knows: what all recipients know, if that is later."""
        shared, _ = self._read(self._build_key(Addressee(RECIPIENTS), news))
        return attrs.evolve(shared, sending=marker.sending) if shared.run > marker.run else marker

    def _read(self, key: str) -> tuple[Marker, str | None]:
        """Return a marker and its ETag, None if there is none yet."""
        stored = self.objects.read(key)
        return (cattrs.structure(stored.document, Marker), stored.etag) if stored else (Marker(), None)

    def _compose_mail(
        self,
        addressee: Addressee,
        export: ExportSettings,
        news: RunOutcome,
        state: str,
        job_run: tuple[str, str],
    ) -> Mail:
        facts = outcome.gather_facts(self.objects, self.links.prefix, export, news, self.clock.time())
        if addressee.audience == RECIPIENTS:
            if self.ses_mailer:
                facts = attrs.evolve(facts, attached=self._read_attachments(export, news))
            personal = None
            if addressee.recipient and self.signer and export.link_days:
                personal = self.signer.open_for(export, addressee.recipient)
            mail = message.compose_notice(export.topic, news, state, facts, self.links, personal=personal)
            if self.ses_mailer is None:
                return mail
            return attrs.evolve(mail, page=compose_page(news, state, facts, self.links, personal))
        return message.compose_alarm(
            self.alarm_topic, news, state, facts, links=self.links, export=export, job_run=job_run
        )

    def _read_attachments(self, export: ExportSettings, news: RunOutcome) -> tuple[Attachment, ...]:
        contract_in_zip = outcome.read_contract(export.name)
        most_kb = contract_in_zip.delivery.attach_up_to_kb if contract_in_zip else 0
        if not most_kb:
            return ()
        return read_attachments(self.objects, message.select_files(news.document), most_kb)

    def _write(self, key: str, marker: Marker, over: str | None) -> str:
        """Overwrite the marker with the ETag `over`; for None, create it.

        Return the new ETag. Raises InProgress if another write was faster.
        """
        etag = self.objects.write(key, attrs.asdict(marker), over=over)
        if etag is None:
            raise InProgress(
                notification_errors.BUSY,
                f"s3://{self.objects.bucket}/{key} was written by another invocation",
            )
        return etag
