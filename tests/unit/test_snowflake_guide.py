"""The page that a Snowflake admin follows: made from what the deployer needs, and no more than that."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess

import pytest
import sql_tokens

from lakeferry.reference import pages, snowflake
from lambdas import contract
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair

NEEDS = [name for name in ("bash", "openssl", "jq") if shutil.which(name) is None]


def statements(script):
    return [line.removesuffix(";") for line in script.splitlines()]


def test_the_page_says_what_the_code_says():
    assert pages.stale_guides() == [], "run `python -m lakeferry.reference`"


def test_a_changed_and_a_missing_page_are_found(tmp_path):
    assert pages.stale_guides(tmp_path) == ["prepare-snowflake.md"]
    pages.write_guides(tmp_path)
    assert pages.stale_guides(tmp_path) == []
    page = tmp_path / "prepare-snowflake.md"
    page.write_text(page.read_text().replace("GRANT CREATE USER ON ACCOUNT", "GRANT OWNERSHIP ON ACCOUNT"))
    assert pages.stale_guides(tmp_path) == ["prepare-snowflake.md"]


def test_the_script_grants_exactly_the_privileges_of_the_contract():
    granted = re.findall(r"GRANT (.+) ON ACCOUNT TO ROLE LAKEFERRY;", snowflake.script())
    assert tuple(granted) == contract.SNOWFLAKE_ACCOUNT_PRIVILEGES
    assert "ACCOUNTADMIN" not in snowflake.script()
    assert "MANAGE GRANTS" not in snowflake.script()


@pytest.mark.parametrize("statement", statements(snowflake.script() + snowflake.undo()))
def test_each_line_is_one_statement(statement):
    assert sql_tokens.tokens(statement)


def test_the_undo_drops_what_the_script_makes():
    made = re.findall(r"CREATE (\w+) IF NOT EXISTS (\w+)", snowflake.script())
    assert set(re.findall(r"DROP (\w+) IF EXISTS (\w+)", snowflake.undo())) == set(made)


@pytest.mark.skipif(bool(NEEDS), reason=f"this machine has no {', '.join(NEEDS)}")
def test_the_commands_of_the_page_make_a_key_and_a_secret_that_we_read(tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", snowflake.text(), re.DOTALL)
    make, store = (next(block for block in blocks if tool in block) for tool in ("openssl", "jq"))
    offline = "\n".join(line for line in store.splitlines() if line.startswith("jq"))
    ran = subprocess.run(["bash", "-euc", make + offline], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    held = json.loads((tmp_path / "secret.json").read_text())
    pair = keypair.load(Secret(held["privateKey"]))
    assert ran.stdout == pair.public, "what the script wants in place of the public key"
    assert len(base64.b64decode(pair.public)) > 400, "3072 bits"
    assert held["user"] == contract.SNOWFLAKE_DEPLOYER
