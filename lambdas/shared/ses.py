"""Mails over Amazon SES.

The exceptions of `send` tell whether a mail may have been sent although no answer arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any, Final, Protocol

import attrs
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from lambdas.shared import errors
from lambdas.shared.aws import answer_to, read_error_code
from lambdas.shared.errors import Refused
from lambdas.shared.http import NotSent, ResponseLost

#: SES answers that the mail was not sent, and that a later attempt may succeed.
_LATER: Final = ("TooManyRequestsException", "LimitExceededException", "Throttling", "ThrottlingException")


class SesClient(Protocol):
    """What is used of boto3's client of SES."""

    def send_email(
        self,
        *,
        FromEmailAddress: str,  # noqa: N803
        Destination: dict[str, list[str]],  # noqa: N803
        Content: dict[str, Any],  # noqa: N803
        ConfigurationSetName: str,  # noqa: N803
        EmailTags: list[dict[str, str]],  # noqa: N803
    ) -> dict[str, Any]: ...


@attrs.frozen
class SesSender:
    """`client` must not retry calls: a retry after a lost answer would send a second mail."""

    client: SesClient
    sender: str
    configuration_set: str

    def send(self, message: EmailMessage, address: str, tags: Mapping[str, str]) -> None:
        """Send a mail to one address. The message gets its From and To here.

        Raises NotSent or Refused if it was not sent, and ResponseLost if that is not known. No exception has
        the address.
        """
        message["From"] = self.sender
        message["To"] = address
        doing = "sending a mail with SES"
        try:
            self.client.send_email(
                FromEmailAddress=self.sender,
                Destination={"ToAddresses": [address]},
                Content={"Raw": {"Data": message.as_bytes()}},
                ConfigurationSetName=self.configuration_set,
                EmailTags=[{"Name": name, "Value": value} for name, value in tags.items()],
            )
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            if status >= 500:
                raise ResponseLost(errors.AWS_REFUSED, f"{doing}: {answer_to(error)}") from None
            if read_error_code(error) in _LATER:
                raise NotSent(errors.AWS_REFUSED, f"{doing}: {read_error_code(error)}") from None
            raise Refused(errors.AWS_REFUSED, f"{doing}: {answer_to(error)}") from None
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise NotSent(errors.AWS_REFUSED, f"{doing}: {type(error).__name__}") from None
        except BotoCoreError as error:
            raise ResponseLost(errors.AWS_REFUSED, f"{doing}: {type(error).__name__}") from None
