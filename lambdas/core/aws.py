"""The calls of AWS that Lambdas make, as ports that boto3's clients fit, and their errors in our words."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from lambdas.core import errors
from lambdas.core.errors import Transient


class SecretsManager(Protocol):
    def get_secret_value(self, **asked: Any) -> Any: ...

    def put_secret_value(self, **asked: Any) -> Any: ...


class DynamoDb(Protocol):
    def get_item(self, **asked: Any) -> Any: ...

    def put_item(self, **asked: Any) -> Any: ...


class CloudFormation(Protocol):
    def describe_stacks(self, **asked: Any) -> Any: ...

    def describe_stack_resource(self, **asked: Any) -> Any: ...


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def unless(codes: Container[str], error: Callable[[str], Exception]) -> Iterator[None]:
    """Raises what `error` makes of AWS's code where that is one of `codes`; every other error passes."""
    try:
        yield
    except ClientError as refused:
        if (code := error_code(refused)) in codes:
            raise error(code) from None
        raise


@contextmanager
def told(doing: str) -> Iterator[None]:
    """Turns what boto3 raises into Transient: throttling passes, and a missing permission may still be on its way."""
    try:
        yield
    except ClientError as error:
        raise Transient(errors.STORAGE, f"{doing}: {error_code(error)}") from None
    except (BotoCoreError, ResponseParserError) as error:
        raise Transient(errors.STORAGE, f"{doing}: {type(error).__name__}") from None
