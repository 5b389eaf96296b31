"""prepare-snowflake.md: what a Snowflake admin runs once, from what the deployer's role needs."""

from __future__ import annotations

from typing import Final

from lakeferry.reference import markdown
from lakeferry.reference.markdown import code
from lambdas import contract

TITLE = "Prepare Snowflake"
_COMMENT: Final = "deploys with Lakeferry"
#: Stands in the script for the public key.
PUBLIC_KEY: Final = "<public key>"
#: What each privilege on the account is for.
_FOR: Final = {
    "CREATE WAREHOUSE": "the warehouse that readers' queries run on",
    "CREATE DATABASE": "the database that holds the tables, and a linked database",
    "CREATE ROLE": "the reader's role and the rotation's",
    "CREATE USER": "the reader, a service user with a key pair",
    "CREATE EXTERNAL VOLUME": "how Snowflake gets to the bucket",
    "CREATE INTEGRATION": "how Snowflake gets to AWS Glue",
}
_INTRO = """\
A Snowflake admin does this once for an account; everything after it is done by the deployment, with this user's key and without
ACCOUNTADMIN. It makes a role, a service user and a small warehouse. What the deployment makes belongs to that role, and the role
can change nothing else."""
_KEY = """\
The shortest way is to let Lakeferry make it, so that the private key is never in a file. The command prints the line for
Snowflake with the public key; the same command again, after step 2, proves the new key and makes it the current one:

```sh
lakeferry secrets set snowflake --generate --stage dev
```

Or on your own machine. The private key never goes to Snowflake, and stays on the machine only until it is in Secrets Manager:

```sh
openssl genrsa 3072 | openssl pkcs8 -topk8 -nocrypt -out lakeferry.p8
openssl rsa -in lakeferry.p8 -pubout | grep -v -- ----- | tr -d '\\n'
```

The second command prints the public key for the script below."""
_STORE = """\
Account and user stand in the deployment file. The command asks for the private key without showing it, or reads it from standard
input (`< lakeferry.p8`), and proves it by a login before it stores it:

```sh
lakeferry secrets set snowflake --stage dev
rm lakeferry.p8
```

By hand, write `account` as `organization-account` (Snowflake's menu shows it), or as the locator with its region:

```sh
jq -n --rawfile key lakeferry.p8 '{{account: "myorg-myaccount", user: "{user}", privateKey: $key}}' > secret.json
aws secretsmanager create-secret --name lakeferry/snowflake --secret-string file://secret.json
rm lakeferry.p8 secret.json
```

A key with a passphrase works too: add the field `passphrase`."""
_AFTER = """\
These roles are made by the deployment and hold no more than this. Neither can write."""
_UNDO = """\
After `cdk destroy`, nothing of the deployment is left in Snowflake. To take away what this page made:"""


def text() -> str:
    privileges = [(code(name), _FOR[name]) for name in contract.SNOWFLAKE_ACCOUNT_PRIVILEGES]
    grants = [(grant.role, code(grant.privilege), grant.on.lower()) for grant in contract.SNOWFLAKE_GRANTS]
    return markdown.page(
        TITLE,
        _INTRO,
        f"## 1. Make a key pair\n\n{_KEY}",
        f"## 2. Run the script\n\nAs ACCOUNTADMIN, with the public key in place of `{PUBLIC_KEY}`:\n\n"
        + markdown.block("sql", script()),
        markdown.table(["privilege on the account", "for"], privileges),
        "It can be run again: what is there stays as it is. The warehouse is needed to make tables, which Snowflake does on one.",
        f"## 3. Store the private key\n\n{_STORE.format(user=contract.SNOWFLAKE_DEPLOYER)}",
        f"## What the deployment's own roles may do\n\n{_AFTER}",
        markdown.table(["role", "privilege", "on the deployment's"], grants),
        f"## Undo it\n\n{_UNDO}\n\n" + markdown.block("sql", undo()),
    )


def script() -> str:
    """Statements, one a line, for an admin to run. A test runs them, and a deployment after them, on the simulator."""
    name = contract.SNOWFLAKE_DEPLOYER
    on_account = (f"GRANT {privilege} ON ACCOUNT TO ROLE {name}" for privilege in contract.SNOWFLAKE_ACCOUNT_PRIVILEGES)
    return _lines(
        f"CREATE ROLE IF NOT EXISTS {name} COMMENT='{_COMMENT}'",
        *on_account,
        f"CREATE WAREHOUSE IF NOT EXISTS {name} WAREHOUSE_SIZE='XSMALL' AUTO_SUSPEND=60 AUTO_RESUME=TRUE "
        f"INITIALLY_SUSPENDED=TRUE COMMENT='{_COMMENT}'",
        f"GRANT USAGE ON WAREHOUSE {name} TO ROLE {name}",
        f"CREATE USER IF NOT EXISTS {name} TYPE=SERVICE DEFAULT_ROLE={name} DEFAULT_WAREHOUSE={name} DEFAULT_SECONDARY_ROLES=() "
        f"RSA_PUBLIC_KEY='{PUBLIC_KEY}' COMMENT='{_COMMENT}'",
        f"GRANT ROLE {name} TO USER {name}",
        f"GRANT ROLE {name} TO ROLE SYSADMIN",
    )


def undo() -> str:
    name = contract.SNOWFLAKE_DEPLOYER
    return _lines(*(f"DROP {kind} IF EXISTS {name}" for kind in ("USER", "WAREHOUSE", "ROLE")))


def _lines(*statements: str) -> str:
    return "".join(f"{statement};\n" for statement in statements)
