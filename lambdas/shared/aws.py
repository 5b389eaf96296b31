"""Turn boto3's exceptions into LakeferryError."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from config.aws_denials import DENIED, format_aws_answer
from lambdas.shared import errors
from lambdas.shared.errors import Denied, LakeferryError, Refused, Transient

#: Error codes that a retry can't resolve.
FINAL: Final = frozenset(
    "DecryptionFailure EncryptionFailure InvalidInputException InvalidParameterException "
    "InvalidRequestException LimitExceededException MalformedPolicyDocumentException "
    "PreconditionNotMetException ResourceExistsException ResourceNotFoundException ValidationError "
    "ValidationException".split()
)


def read_error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def answer_to(error: ClientError) -> str:
    """Return the code and, for a denial, what AWS says about it."""
    return format_aws_answer(error.response.get("Error", {}))


@contextmanager
def raise_instead(codes: Container[str], error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise `error(answer)` if AWS answers with one of `codes`. Other exceptions are not changed."""
    try:
        yield
    except ClientError as refused:
        if read_error_code(refused) in codes:
            raise error(answer_to(refused)) from None
        raise


def translate_error(doing: str, error: Mapping[str, Any]) -> LakeferryError:
    """Return Refused for a final code, Denied for a missing permission, and Transient otherwise. `error` is
    boto3's `Error`.

    A missing permission is tried again for a while: a new role's permissions take some seconds to become
    effective.
    """
    code = str(error.get("Code", ""))
    message = f"{doing}: {format_aws_answer(error)}"
    if code in FINAL:
        return Refused(errors.AWS_REFUSED, message)
    if code in DENIED:
        return Denied(errors.AWS_REFUSED, message)
    return Transient(errors.AWS_REFUSED, message)


@contextmanager
def translate_aws_errors(doing: str) -> Iterator[None]:
    """Turn boto3's exceptions into LakeferryError: Transient if there was no answer."""
    try:
        yield
    except ClientError as error:
        raise translate_error(doing, error.response.get("Error", {})) from None
    except (BotoCoreError, ResponseParserError) as error:
        raise Transient(errors.AWS_REFUSED, f"{doing}: {type(error).__name__}") from None
