"""The settings of a user: what differs is set in one statement, and all else is left alone."""

from __future__ import annotations

import json

import pytest

from lambdas.shared.errors import InProgress, ResourceMissing
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair
from lambdas.snowflake.resources import user
from tests.support.snowflake_context import (
    OWN,
    context,
    failure,
    pair,
    result,
    row,
    script,
    spec,
    value,
    written,
)
from tests.support.snowflake_users import AS_WANTED, GIVEN, SETTINGS, described, held, kept, there


def test_a_user_has_the_chosen_name_and_is_found_and_dropped_by_it(server):
    chosen = spec(user, secret="reader", name="sales_reader")
    creating = context(script(server), reader=held(name="SALES_READER"))
    assert user.create(creating, chosen) == "SALES_READER"
    assert written(server)[0].startswith('CREATE USER "SALES_READER" TYPE=SERVICE')
    script(server, **{"SHOW USERS LIKE 'SALES_READER'": result(row("SALES_READER"))})
    for deleting in (False, True):
        held_context = context(server, deleting=deleting)
        assert user.find_existing(held_context, chosen, None) == ["SALES_READER"]
    user.delete(held_context, chosen, "SALES_READER")
    assert written(server)[1:] == ['DROP USER IF EXISTS "SALES_READER"']
    assert held_context.secrets.client.values == {"reader": None}, "the secret belongs to the stack"


@pytest.mark.parametrize(
    ("before", "now", "statement"),
    [
        ("P", "", f'ALTER USER "{OWN}" UNSET NETWORK_POLICY'),
        ("", "p", f'ALTER USER "{OWN}" SET NETWORK_POLICY="P"'),
        ("P", "p", f'ALTER USER "{OWN}" SET NETWORK_POLICY="P"'),
        (None, "p", f'ALTER USER "{OWN}" SET NETWORK_POLICY="P"'),
        ("", "", None),
        (None, "", None),
    ],
)
def test_a_network_policy_is_set_again_and_unset_where_it_was_removed(server, before, now, statement):
    """DESC USER doesn't show it."""
    there(server)
    previous = None if before is None else spec(user, **GIVEN, network_policy=before)
    updating = context(server, reader=held(), previous=previous)
    user.update(updating, spec(user, **GIVEN, network_policy=now), OWN)
    assert written(server) == ([statement] if statement else [])


def test_all_that_differs_is_set_in_one_statement(server):
    there(server, **{"DESC USER": described(**dict.fromkeys(AS_WANTED, "zzz"))})
    user.update(context(server, reader=held()), spec(user, **GIVEN, network_policy="P"), OWN)
    assert written(server) == [f'ALTER USER "{OWN}" SET {SETTINGS} NETWORK_POLICY="P"']


@pytest.mark.parametrize(
    "shown",
    [
        {"DEFAULT_ROLE": '"READER"'},
        {"DEFAULT_NAMESPACE": 'sales."PUBLIC"'},
        {"DEFAULT_SECONDARY_ROLES": " [ ] "},
    ],
)
def test_another_spelling_of_a_setting_is_no_difference(server, shown):
    there(server, **{"DESC USER": described(**shown)})
    user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == []


def test_properties_of_a_user_may_be_shown_in_lower_case(server):
    shown = {**AS_WANTED, "RSA_PUBLIC_KEY_FP": pair().fingerprint, "RSA_PUBLIC_KEY_2_FP": "null"}
    rows = [{"property": name.lower(), "value": text} for name, text in shown.items()]
    there(server, **{"DESC USER": result(*rows)})
    user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == []


def test_a_setting_that_snowflake_does_not_show_is_set(server):
    shown = {"RSA_PUBLIC_KEY_FP": pair().fingerprint, "RSA_PUBLIC_KEY_2_FP": "null"}
    rows = [{"property": name, "value": text} for name, text in shown.items()]
    there(server, **{"DESC USER": result(*rows)})
    user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == [f'ALTER USER "{OWN}" SET {SETTINGS}']


def test_a_user_who_is_gone_or_not_described_is_missing(server):
    with pytest.raises(ResourceMissing, match=f"LF-VANISHED  {OWN} is not there"):
        user.update(context(script(server), reader=held()), spec(user, **GIVEN), OWN)
    there(server, **{"DESC USER": result(columns=("property", "value"))})
    with pytest.raises(ResourceMissing, match=f"LF-VANISHED  user {OWN} is not described"):
        user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == []


def test_why_a_user_is_not_ready_is_said(server):
    there(server, SELECT=failure("390144", "JWT token is invalid.", 401))
    with pytest.raises(InProgress, match=r"SNF-KEY-NOT-READY  SELECT CURRENT_USER.* JWT token is invalid"):
        user.is_ready(context(server, reader=held()), spec(user, **GIVEN), OWN)
    there(server, SELECT=value("OTHER"))
    message = f"SNF-KEY-NOT-READY  the key in secret reader logs in as 'OTHER', not as {OWN}"
    with pytest.raises(InProgress, match=message):
        user.is_ready(context(server, reader=held()), spec(user, **GIVEN), OWN)


def test_a_secret_that_is_as_it_should_be_is_not_written(server):
    held_context = context(there(server), reader=held())
    user.update(held_context, spec(user, **GIVEN), OWN)
    user.create(held_context, spec(user, **GIVEN))
    assert held_context.secrets.client.tokens == set()


def test_a_secret_of_the_user_without_a_key_gets_one(server):
    fields = {name: text for name, text in json.loads(held()).items() if name != "privateKey"}
    held_context = context(script(server), reader=json.dumps(fields))
    user.create(held_context, spec(user, **GIVEN))
    made = keypair.load(Secret(kept(held_context)["privateKey"]))
    assert kept(held_context)["fingerprint"] == made.fingerprint != fields["fingerprint"]
    assert f"RSA_PUBLIC_KEY='{made.public}'" in written(server)[0]


def test_the_same_key_is_written_again_at_another_time(server):
    """Two changes of one key's connection are two versions of the secret."""
    held_context = context(there(server), reader=held(warehouse="OLD"))
    user.update(held_context, spec(user, **GIVEN), OWN)
    held_context.clock.sleep(1)
    user.update(held_context, spec(user, **{**GIVEN, "warehouse": "V"}), OWN)
    assert kept(held_context)["warehouse"] == "V"
    assert len(held_context.secrets.client.tokens) == 2
