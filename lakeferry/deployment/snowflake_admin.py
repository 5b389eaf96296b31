"""The SQL script that a Snowflake admin runs once to create the deployer's role, user and warehouse.

docs/how-to/prepare-snowflake.md shows it.
"""

from __future__ import annotations

from typing import Final

from lambdas import contract

#: The placeholder for the public key in the script.
PUBLIC_KEY: Final = "<public key>"
_COMMENT: Final = "deploys with Lakeferry"


def script() -> str:
    """Return the statements, one on each line. The script can be run again: it doesn't change what exists."""
    name = contract.SNOWFLAKE_DEPLOYER
    on_account = (
        f"GRANT {privilege} ON ACCOUNT TO ROLE {name}" for privilege in contract.SNOWFLAKE_ACCOUNT_PRIVILEGES
    )
    return _build_lines(
        f"CREATE ROLE IF NOT EXISTS {name} COMMENT='{_COMMENT}'",
        *on_account,
        f"CREATE WAREHOUSE IF NOT EXISTS {name} WAREHOUSE_SIZE='XSMALL' AUTO_SUSPEND=60 AUTO_RESUME=TRUE "
        f"INITIALLY_SUSPENDED=TRUE COMMENT='{_COMMENT}'",
        f"GRANT USAGE ON WAREHOUSE {name} TO ROLE {name}",
        f"CREATE USER IF NOT EXISTS {name} TYPE=SERVICE DEFAULT_ROLE={name} DEFAULT_WAREHOUSE={name} "
        f"DEFAULT_SECONDARY_ROLES=() RSA_PUBLIC_KEY='{PUBLIC_KEY}' COMMENT='{_COMMENT}'",
        f"GRANT ROLE {name} TO USER {name}",
        f"GRANT ROLE {name} TO ROLE SYSADMIN",
    )


def undo() -> str:
    """Return the statements that drop what the script creates."""
    name = contract.SNOWFLAKE_DEPLOYER
    return _build_lines(*(f"DROP {kind} IF EXISTS {name}" for kind in ("USER", "WAREHOUSE", "ROLE")))


def _build_lines(*statements: str) -> str:
    return "".join(f"{statement};\n" for statement in statements)
