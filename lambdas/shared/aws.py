"""Turn boto3's exceptions into LakeferryError."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from lambdas.shared import errors
from lambdas.shared.errors import Denied, LakeferryError, Refused, Transient

#: Error codes that a retry can't resolve.
FINAL: Final = frozenset(
    "DecryptionFailure EncryptionFailure InvalidInputException InvalidParameterException InvalidRequestException "
    "LimitExceededException MalformedPolicyDocumentException PreconditionNotMetException ResourceExistsException "
    "ResourceNotFoundException ValidationError ValidationException".split()
)
#: Error codes of missing permissions. A new role's permissions take some seconds to become effective.
DENIED: Final = frozenset("AccessDenied AccessDeniedException KMSAccessDeniedException UnauthorizedOperation".split())


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def raise_instead(codes: Container[str], error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise `error(code)` if AWS answers with one of `codes`. Other exceptions are not changed."""
    try:
        yield
    except ClientError as refused:
        if (code := error_code(refused)) in codes:
            raise error(code) from None
        raise


def error_for(doing: str, code: str) -> LakeferryError:
    """Return Refused for a final code, Denied for a missing permission, and Transient otherwise."""
    kind = Refused if code in FINAL else Denied if code in DENIED else Transient
    return kind(errors.STORAGE, f"{doing}: {code}")


@contextmanager
def aws_call(doing: str) -> Iterator[None]:
    """Turn boto3's exceptions into LakeferryError: Transient if there was no answer."""
    try:
        yield
    except ClientError as error:
        raise error_for(doing, error_code(error)) from None
    except (BotoCoreError, ResponseParserError) as error:
        raise Transient(errors.STORAGE, f"{doing}: {type(error).__name__}") from None
