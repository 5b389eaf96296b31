"""Errors of the functions. The class of an error determines how it is handled, and its code what users read.

LakeferryError
├── BadProperties        mistakes in the event's properties, all of them      reported immediately
├── StaleRequest         a later request has replaced this one                reported immediately
├── OtherTenant          the login is of another organization or account      reported immediately
├── Refused              the vendor refuses, and would refuse again           reported immediately
│   ├── Denied           401 or 403, also while a new permission isn't effective   retried for a while
│   ├── NotFound         404 for something other than the object itself       retried for a while
│   └── Conflict         409: exists, or in use, or being changed             retried for a while
├── ResourceFailed       the object exists and doesn't work                   retried for a while
│   └── NeedsReplacement  … and only a new object can help                    replaced, for a while
│       └── ReplacementRequired  a changed property that the vendor can't change   replaced
├── Transient            it is not known whether the call had an effect       retried
│   ├── InProgress       not an error: the operation takes time
│   ├── RateLimited      429
│   └── OutOfTime        this invocation ends; the next one continues
├── ResourceMissing      the object in the state does not exist               found again, or created again
│   └── ParentMissing    its environment or cluster does not exist            retried for a while
└── TimedOut             the wait is over; has the code and text of the last error

"A while" is `patience`, in seconds, counted from the first occurrence of the same error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from config.aws_denials import find_denial, shorten
from config.errors import find_entry, to_plain_text
from lambdas.shared.redaction import redact

#: Details from a vendor are cut to this many characters.
DETAIL_LENGTH = 300


def shorten_detail(text: str, length: int = DETAIL_LENGTH) -> str:
    """Return a vendor's text with at most `length` characters, its beginning and its end."""
    return shorten(text, length)


class ErrorKind(NamedTuple):
    """A code, whose meaning never changes. config/errors.toml says what it means and what to do."""

    code: str

    @property
    def remedy(self) -> str:
        return to_plain_text(find_entry(self.code).remedy)


class LakeferryError(Exception):
    """`what` says what happened, without secrets; the kind says what to do.

    `doing` names the operation, the resource type and the logical id; the caller that knows them sets it.
    """

    patience: float = 0.0
    doing: str = ""

    def __init__(self, kind: ErrorKind, what: str, *, patience: float | None = None) -> None:
        self.kind = kind
        self.what = redact(what)
        if patience is not None:
            self.patience = patience
        super().__init__(kind.code, self.what)

    @property
    def remedy(self) -> str:
        """What to do: against what denied the call, if AWS names it in the message, also in one that a vendor
        passes on.
        """
        denial = find_denial(self.what)
        return denial.remedy if denial else self.kind.remedy

    def __str__(self) -> str:
        return f"{self.kind.code}  {self.doing}{self.what}. What to do: {self.remedy}"


class BadProperties(LakeferryError):
    """`problems` has pairs: a property's name, and what is wrong with it."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__(PROPERTIES, "; ".join(f"{name}: {wrong}" for name, wrong in problems))


class StaleRequest(LakeferryError):
    """A later request is in force; this one may do nothing more."""


class OtherTenant(LakeferryError):
    """The login is of another organization or account than the objects, so it would see none of them."""


class Refused(LakeferryError):
    """The vendor refused, did nothing, and would refuse again."""


class Denied(Refused):
    patience = 120.0


class NotFound(Refused):
    patience = 600.0


class Conflict(Refused):
    patience = 600.0


class ResourceFailed(LakeferryError):
    """The vendor created the object, and reports that it doesn't work."""


class NeedsReplacement(ResourceFailed):
    """Only deleting and creating the object again can help."""


class ReplacementRequired(NeedsReplacement):
    """A property that the vendor can't change has changed.

    Names are unique, so the old object is deleted first.
    """


class Transient(LakeferryError):
    """A retry may help; it is not known whether the call had an effect."""


class InProgress(Transient):
    """Not an error: the operation takes time."""


class RateLimited(Transient):
    """`wait` is the number of seconds until the next call is allowed."""

    def __init__(self, kind: ErrorKind, what: str, *, wait: float) -> None:
        super().__init__(kind, what)
        self.wait = wait


class OutOfTime(Transient):
    """The invocation's time is used up."""


class ResourceMissing(LakeferryError):
    """The object that was created does not exist any more."""


class ParentMissing(ResourceMissing):
    """The environment or the cluster of the object does not exist, or a 403 makes it seem so."""

    patience = 600.0


class TimedOut(LakeferryError):
    """The wait is over. `kind` is that of the last error, whose text is at the beginning of this one's."""


PROPERTIES: Final = ErrorKind("LF-PROPERTIES")
OVERTAKEN: Final = ErrorKind("LF-OVERTAKEN")
FOREIGN: Final = ErrorKind("LF-FOREIGN-EVENT")
SETTINGS: Final = ErrorKind("LF-SETTINGS")
WAITING: Final = ErrorKind("LF-WAITING")
OUT_OF_TIME: Final = ErrorKind("LF-OUT-OF-TIME")
OUTDATED: Final = ErrorKind("LF-OUTDATED")
VANISHED: Final = ErrorKind("LF-VANISHED")
UNREACHABLE: Final = ErrorKind("NET-UNREACHABLE")
TLS: Final = ErrorKind("NET-TLS")
UNREADABLE: Final = ErrorKind("NET-UNREADABLE")
ADDRESS: Final = ErrorKind("NET-ADDRESS")
SECRET_MISSING: Final = ErrorKind("AWS-SECRET-MISSING")
SECRET_SHAPE: Final = ErrorKind("AWS-SECRET-SHAPE")
AGGREGATE_TABLE: Final = ErrorKind("AWS-AGGREGATE-TABLE")
AWS_REFUSED: Final = ErrorKind("AWS-REFUSED")
DOCUMENT: Final = ErrorKind("AWS-DOCUMENT")

OUTPUTS: Final = ErrorKind("LF-OUTPUTS")
PRINCIPAL: Final = ErrorKind("LF-PRINCIPAL")
INTERNAL: Final = ErrorKind("LF-INTERNAL")
