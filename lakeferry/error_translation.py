"""Translates exceptions into errors for the user of a command: exceptions of Lakeferry, of AWS, and
unexpected ones.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from botocore import exceptions as boto
from botocore.exceptions import BotoCoreError, ClientError

from config.aws_denials import DENIED, find_denial
from glue_jobs.errors import ExportError
from lakeferry import errors
from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT
from lambdas.shared import errors as lambda_errors
from lambdas.shared.aws import answer_to, read_error_code
from lambdas.shared.errors import LakeferryError
from lambdas.shared.redaction import redact

#: What boto3 raises if there are no AWS credentials, or if they have expired.
_LOGGED_OUT: Final = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.ProfileNotFound,
    boto.SSOError,
    boto.TokenRetrievalError,
    boto.UnauthorizedSSOTokenError,
)
_TOO_MANY: Final = ("TooManyRequestsException", "RequestLimitExceeded", "SlowDown")
TRACE: Final = ROOT / ".lakeferry" / "last-error.txt"


def as_failure(error: Exception) -> CommandFailed:
    """Return the error that the command reports. It contains no secret, even if the exception does."""
    if isinstance(error, LakeferryError):
        refusal = error.__context__
        if error.kind is lambda_errors.AWS_REFUSED and isinstance(refusal, BotoCoreError | ClientError):
            return _translate_aws_error(refusal, error.doing + _remove_answer(error.what, refusal))
        why = errors.find_entry(error.kind.code).cause
        hint = "" if error.remedy == error.kind.remedy else error.remedy
        return CommandFailed(
            error.kind.code, f"{error.doing}{error.what}", hint, why=why, trace=trace_of(error)
        )
    if isinstance(error, ExportError):
        return CommandFailed(error.code, redact(error.what), error.remedy, trace=trace_of(error))
    if isinstance(error, BotoCoreError | ClientError):
        doing = f"calling {error.operation_name}" if isinstance(error, ClientError) else "calling AWS"
        return _translate_aws_error(error, doing)
    return _translate_unexpected(error)


def is_aws_denial(error: Exception) -> bool:
    """Return whether AWS denied a call because of a missing permission, also if the exception is translated
    already.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ClientError):
        code = cause.kind.code if isinstance(cause, LakeferryError) else getattr(cause, "code", "")
        cause = cause.__context__ if code == lambda_errors.AWS_REFUSED.code else None
    return cause is not None and read_error_code(cause) in DENIED


def trace_of(error: Exception) -> str:
    return redact("".join(traceback.format_exception(error)))


def _remove_answer(what: str, error: BotoCoreError | ClientError) -> str:
    """Return what `aws_call` was doing, without the answer of AWS that it appended."""
    answer = answer_to(error) if isinstance(error, ClientError) else type(error).__name__
    return what.partition(f": {redact(answer)}")[0]


def _translate_aws_error(error: BotoCoreError | ClientError, doing: str) -> CommandFailed:
    failure = _choose_aws_failure(error, doing)
    failure.trace = trace_of(error)
    return failure


def _translate_unexpected(error: Exception) -> CommandFailed:
    trace = trace_of(error)
    is_saved = False
    try:
        TRACE.parent.mkdir(exist_ok=True)
        TRACE.write_text(trace, encoding="utf-8")
        is_saved = True
    except OSError:
        pass  # the error must be reported even if the folder is not writable
    trace_file = str(TRACE.relative_to(ROOT)) if is_saved else ""
    hint = (
        f"Report it with {trace_file}, which contains no secret"
        if is_saved
        else "Run it again with --verbose and report what it shows"
    )
    message = f"unexpected error: {type(error).__name__}{_find_place(error)}"
    return CommandFailed("UNEXPECTED", message, hint, details={"trace": trace_file}, trace=trace)


def _find_place(error: Exception) -> str:
    """Return the last file and line of this repository in the traceback, "" if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame
        for frame in frames
        if Path(frame.filename).is_relative_to(ROOT) and ".venv" not in frame.filename
    ]
    return f" in {Path(ours[-1].filename).relative_to(ROOT)}, line {ours[-1].lineno}" if ours else ""


@contextmanager
def translate_aws_errors(doing: str) -> Iterator[None]:
    """Translate exceptions of boto3 into CommandFailed.

    `doing` begins the message, for instance "reading the stacks".
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise _choose_aws_failure(error, doing) from None


def _choose_aws_failure(error: ClientError | BotoCoreError, doing: str) -> CommandFailed:
    if isinstance(error, _LOGGED_OUT):
        message = f"can't call AWS, because nobody is logged in ({type(error).__name__})"
        return CommandFailed("AWS-CREDENTIALS", message)
    if isinstance(error, ClientError):
        return _explain_refused(doing, error)
    return _explain_unreachable(doing, error)


def _explain_unreachable(doing: str, error: BotoCoreError) -> CommandFailed:
    """Name the address if the environment has another one than AWS's, because the program at that address has
    mostly ended.
    """
    message = f"{doing}: {type(error).__name__}"
    address = os.environ.get("AWS_ENDPOINT_URL", "")
    if not address:
        return CommandFailed("AWS-UNREACHABLE", message)
    hint = (
        "Is the rehearsal of that terminal still running? For AWS itself: `unset AWS_ENDPOINT_URL`, or "
        "open another terminal"
    )
    return CommandFailed(
        "AWS-UNREACHABLE", f"{message}. {address}, which AWS_ENDPOINT_URL names, does not answer", hint
    )


def _explain_refused(doing: str, error: ClientError) -> CommandFailed:
    code = read_error_code(error)
    answer = redact(answer_to(error))
    if "ExpiredToken" in code or code in (
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "RequestExpired",
    ):
        return CommandFailed("AWS-CREDENTIALS", f"AWS rejects the credentials ({code})")
    denial = find_denial(answer) if code in DENIED else None
    if denial:
        hint = f"It is denied by {denial.by}. {denial.remedy}"
    elif "Throttl" in code or code in _TOO_MANY:
        hint = "AWS is throttling the requests of this account: run the command again in a minute"
    else:
        hint = "Check the permissions of the role that you are logged in with"
    return CommandFailed(lambda_errors.AWS_REFUSED.code, f"{doing}: {answer}", hint)
