"""The context of a resource's verbs, with a scripted SQL API that answers statements by how they begin."""

from __future__ import annotations

import functools
import json

from lambdas.shared.clock import Deadline
from lambdas.shared.http import Session, Timeouts
from lambdas.shared.properties import parse
from lambdas.shared.resource import Context
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake import keypair
from lambdas.snowflake.client import Login, Snowflake
from tests.support.resource_environment import ManualClock, MemorySecrets

POST = "POST /api/v2/statements"
NAME = "lakeferry-test-eu-west-1-it-0a1b2c3d"
OWN = "LAKEFERRY_TEST_EU_WEST_1_IT_0A1B2C3D"
MARK = f"lakeferry {NAME}"
ORIGIN = "0123456789abcdef0123456789abcdef"
EXTERNAL_ID = f"lakeferry-{ORIGIN}"
ROLE_ARN = "arn:aws:iam::111122223333:role/lakeferry-snowflake"
IAM_USER = "arn:aws:iam::999988887777:user/abcd1000-s"
READS = ("SHOW", "DESC", "SELECT")


@functools.cache
def pair(number=1):
    """Return a key pair, made once because that takes a while."""
    return keypair.make()


def result(*rows, columns=(), handle="01b2-q", **more):
    """Return an answer that is complete, with rows given as dictionaries."""
    names = list(columns) or list(rows[0] if rows else {"status": ""})
    data = [[row.get(name) for name in names] for row in rows]
    meta = {
        "numRows": len(data),
        "format": "jsonv2",
        "rowType": [{"name": name, "type": "text"} for name in names],
        "partitionInfo": [{"rowCount": len(data)}],
    }
    return 200, {
        "code": "090001",
        "sqlState": "00000",
        "message": "Statement executed successfully.",
        "statementHandle": handle,
        "resultSetMetaData": meta,
        "data": data,
        **more,
    }


def value(what):
    return result({"RESULT": what if isinstance(what, str) else json.dumps(what)})


def failure(code, message="as the test wants", status=422):
    return status, {"code": code, "sqlState": "42000", "message": message, "statementHandle": "01b2-failed"}


DONE = result({"status": "Statement executed successfully."})
MISSING = failure("002003", "SQL compilation error: Object does not exist or not authorized.")


def script(server, **answers):
    """Answer by the beginning of the statement; the longest matching beginning counts.

    Each answer of a list is given once, and the last one for ever. Without an answer, writes succeed and
    reads find nothing.
    """

    answers = {
        "SELECT CURRENT_ACCOUNT()": result({"LOCATOR": "AB12345", "REGION": "AWS_EU_WEST_1"}),
        **answers,
    }

    def answer(sent):
        statement = sent.body["statement"]
        fitting = [start for start in answers if statement.startswith(start)]
        if not fitting:
            return result(columns=("name",)) if statement.startswith(READS) else DONE
        found = answers[max(fitting, key=len)]
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        return found(sent) if callable(found) else found

    server.answers[POST] = answer
    return server


def vendor(server, clock=None, left=90, **login):
    clock = clock or ManualClock()
    given = {
        "account": "myorg-acct",
        "user": "deployer",
        "role": "DEPLOYER",
        "warehouse": "DEPLOYING",
        **login,
    }
    session = Session(Deadline(clock, clock.time() + left), timeouts=Timeouts(1, 1, 5))
    return Snowflake(session, clock, Login(**given), pair(), server.url)


def context(server, *, deleting=False, previous=None, notes=None, left=90, **secrets):
    """Return a context with an empty secret `reader` and with `secrets`."""
    client = vendor(server, left=left)
    store = SecretStore(MemorySecrets(**{"reader": None, **secrets}))
    notes = {} if notes is None else notes
    return Context(client, NAME, store, client._clock, notes, previous, deleting, ORIGIN)


def spec(kind, **given):
    """Parse a resource type's properties, as strictly as for a new deployment."""
    return parse(kind.PROPERTIES, given, strict=True)


def sent(server):
    """Return all statements in order."""
    return [item.body["statement"] for item in server.sent if item.body]


def written(server):
    """Return the statements that change something, or could."""
    return [statement for statement in sent(server) if not statement.startswith(READS)]


def row(name=OWN, comment=MARK, **columns):
    return {"name": name, "comment": comment, **columns}
