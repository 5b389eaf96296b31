"""What sends mails to recipients: `[mail]`."""

from __future__ import annotations

from email.utils import parseaddr

import attrs

from config.deployments import validation
from config.toml_model import setting


@attrs.frozen
class Mail:
    """`[mail]`: Amazon SES sends the mails to recipients. Without it, SNS does."""

    sender: str = setting(
        'The sender of mails to recipients: "exports@example.com" or "Exports <exports@example.com>".',
        check=validation.explain_bad_sender,
    )
    identity: str | None = setting(
        "The domain or address that is verified in SES, in the deployment's account and region. The default "
        "is the sender's domain.",
        default=None,
        check=validation.explain_bad_identity,
    )

    @property
    def address(self) -> str:
        return parseaddr(self.sender)[1]

    @property
    def verified_identity(self) -> str:
        return self.identity or self.address.rpartition("@")[2]
