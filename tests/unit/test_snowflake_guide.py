"""The guide for Snowflake admins grants exactly the privileges that the deployer needs."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lakeferry.deployment import snowflake_admin
from lambdas import contract
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair
from tests.support import sql_tokens

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "prepare-snowflake.md").read_text()
NEEDS = [name for name in ("bash", "openssl", "jq") if shutil.which(name) is None]


def statements(script):
    return [line.removesuffix(";") for line in script.splitlines()]


def test_the_page_shows_the_statements_of_the_code():
    script, _network_policy, undo = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert (script, undo) == (snowflake_admin.script(), snowflake_admin.undo())


def test_the_tables_of_the_page_are_those_of_the_contract():
    rows = [tuple(line.strip("| ").split(" | ")) for line in PAGE.splitlines() if line.startswith("| ")]
    privileges = [row[0].strip("`") for row in rows if len(row) == 2 and row[0].startswith("`")]
    assert tuple(privileges) == contract.SNOWFLAKE_ACCOUNT_PRIVILEGES
    grants = [row for row in rows if len(row) == 3 and row[1].startswith("`")]
    assert grants == [
        (grant.role, f"`{grant.privilege}`", grant.on.lower()) for grant in contract.SNOWFLAKE_GRANTS
    ]


def test_the_script_grants_exactly_the_privileges_of_the_contract():
    granted = re.findall(r"GRANT (.+) ON ACCOUNT TO ROLE LAKEFERRY;", snowflake_admin.script())
    assert tuple(granted) == contract.SNOWFLAKE_ACCOUNT_PRIVILEGES
    assert "ACCOUNTADMIN" not in snowflake_admin.script()
    assert "MANAGE GRANTS" not in snowflake_admin.script()


@pytest.mark.parametrize("statement", statements(snowflake_admin.script() + snowflake_admin.undo()))
def test_each_line_is_one_statement(statement):
    assert sql_tokens.tokens(statement)


def test_the_undo_drops_what_the_script_makes():
    made = re.findall(r"CREATE (\w+) IF NOT EXISTS (\w+)", snowflake_admin.script())
    assert set(re.findall(r"DROP (\w+) IF EXISTS (\w+)", snowflake_admin.undo())) == set(made)


@pytest.mark.skipif(bool(NEEDS), reason=f"this machine has no {', '.join(NEEDS)}")
def test_the_commands_of_the_page_create_a_key_and_a_secret_that_we_can_read(tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    make, store = (next(block for block in blocks if tool in block) for tool in ("openssl", "jq"))
    offline = "\n".join(line for line in store.splitlines() if line.startswith("jq"))
    ran = subprocess.run(
        ["bash", "-euc", make + offline], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    held = json.loads((tmp_path / "secret.json").read_text())
    pair = keypair.load(Secret(held["privateKey"]))
    assert ran.stdout == pair.public, "what the script wants in place of the public key"
    assert len(base64.b64decode(pair.public)) > 400, "3072 bits"
    assert held["user"] == contract.SNOWFLAKE_DEPLOYER
