"""Topics of SNS. Who publishes must know whether a message may have gone out although no answer came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from lambdas.shared import errors
from lambdas.shared.aws import error_code
from lambdas.shared.errors import Refused
from lambdas.shared.http import NotSent, ResponseLost

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

_THROTTLED: Final = ("Throttled", "Throttling", "ThrottlingException", "ThrottledException", "KMSThrottling")


@attrs.frozen
class SnsTopics:
    """`client` sends each call once: it can't tell a lost answer from a lost call any better than we can."""

    client: SNSClient

    def publish(self, topic: str, subject: str, body: str) -> None:
        """Raises NotSent, Refused (nothing went out) and ResponseLost (nobody knows)."""
        doing = f"publishing to {topic}"
        try:
            self.client.publish(TopicArn=topic, Subject=subject, Message=body)
        except ClientError as error:
            code, status = error_code(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            if status >= 500:
                raise ResponseLost(errors.STORAGE, f"{doing}: {code}") from None
            if code in _THROTTLED:
                raise NotSent(errors.STORAGE, f"{doing}: {code}") from None
            raise Refused(errors.STORAGE, f"{doing}: {code}") from None
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise NotSent(errors.STORAGE, f"{doing}: {type(error).__name__}") from None
        except BotoCoreError as error:
            raise ResponseLost(errors.STORAGE, f"{doing}: {type(error).__name__}") from None
