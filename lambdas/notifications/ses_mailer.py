"""Mails to recipients over SES: HTML with the text as its alternative, to one address each."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP
from typing import Final

import attrs

from lambdas import contract
from lambdas.notifications.message import Mail
from lambdas.notifications.outcome import ExportSettings
from lambdas.shared.ses import SesSender

#: Automatic answers of mailboxes must not come back (RFC 3834).
_AUTOMATIC: Final = "auto-generated"


@attrs.frozen
class SesMailer:
    sender: SesSender

    def send(self, mail: Mail, export: ExportSettings, recipient: str) -> None:
        """Send a mail to the recipient with this id. Raises as SesSender.send does."""
        message = EmailMessage(policy=SMTP)
        message["Subject"] = mail.subject
        message["Auto-Submitted"] = _AUTOMATIC
        message.set_content(mail.body, cte="quoted-printable")
        message.add_alternative(mail.page, subtype="html", cte="quoted-printable")
        for attachment in mail.attachments:
            main, sub = attachment.type
            message.add_attachment(attachment.content, maintype=main, subtype=sub, filename=attachment.name)
        address = export.addresses[export.recipients.index(recipient)]
        self.sender.send(message, address, {contract.MAIL_EXPORT_TAG: export.name})
