"""SNS topics.

The exceptions of `publish` tell whether a message may have been sent although no answer arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from lambdas import contract
from lambdas.shared import errors
from lambdas.shared.aws import answer_to, read_error_code
from lambdas.shared.errors import Refused
from lambdas.shared.http import NotSent, ResponseLost

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sns.type_defs import MessageAttributeValueTypeDef

_THROTTLED: Final = ("Throttled", "Throttling", "ThrottlingException", "ThrottledException", "KMSThrottling")


@attrs.frozen
class SnsTopics:
    """`client` must not retry calls: a retry after a lost answer would send a second message."""

    client: SNSClient

    def publish(self, topic: str, subject: str, body: str, recipient: str = "") -> None:
        """Publish a message. With `recipient`, only subscriptions that filter for this id get it.

        Raises NotSent or Refused if it was not sent, and ResponseLost if that is not known.
        """
        doing = f"publishing to {topic}"
        attributes: dict[str, MessageAttributeValueTypeDef] = {}
        if recipient:
            attributes[contract.RECIPIENT] = {"DataType": "String", "StringValue": recipient}
        try:
            self.client.publish(TopicArn=topic, Subject=subject, Message=body, MessageAttributes=attributes)
        except ClientError as error:
            code = read_error_code(error)
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            if status >= 500:
                raise ResponseLost(errors.AWS_REFUSED, f"{doing}: {answer_to(error)}") from None
            if code in _THROTTLED:
                raise NotSent(errors.AWS_REFUSED, f"{doing}: {code}") from None
            raise Refused(errors.AWS_REFUSED, f"{doing}: {answer_to(error)}") from None
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise NotSent(errors.AWS_REFUSED, f"{doing}: {type(error).__name__}") from None
        except BotoCoreError as error:
            raise ResponseLost(errors.AWS_REFUSED, f"{doing}: {type(error).__name__}") from None
