"""Rows of the fault catalogue, and the test of each: L between CloudFormation and a vendor, I security, N mails.

D stands in tests/spark/test_catalogue.py, R in tests/vendors/test_rotation_protocol.py.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
_LIFECYCLE = "unit/test_resources_lifecycle.py"
_CLIENT = "unit/test_confluent_client.py"
_HTTP = "unit/test_core_http.py"
_EVERY_FAULT = "vendors/test_every_fault.py test_any_fault_at_any_call_leads_to_the_same_end"

#: What is meant, and the test. The many lives of test_every_fault.py go through most of them a second time.
ROWS = {
    "L1": ("the same create twice", f"{_LIFECYCLE} test_the_same_create_twice_is_one_thing_and_one_answer"),
    "L2": ("the same create twice at once", f"{_LIFECYCLE} test_two_threads_make_one_thing"),
    "L3": ("killed after the create", "unit/test_resources_faults.py test_one_fault_at_any_call"),
    "L4": ("effect, then error", _EVERY_FAULT),
    "L5": (
        "a create that fails at step k",
        "unit/test_confluent_api_key.py test_a_secret_that_can_not_be_stored_is_told_and_the_key_is_found_again",
    ),
    "L6": (
        "a delete with an invented id",
        f"{_LIFECYCLE} test_a_delete_waits_for_a_create_that_is_at_work_and_takes_what_it_made",
    ),
    "L7": ("a delete overtakes its create", f"{_LIFECYCLE} test_a_create_that_comes_after_its_delete_makes_nothing"),
    "L8": ("a delete of what never was", f"{_LIFECYCLE} test_a_delete_of_what_was_never_made_writes_nothing"),
    "L9": ("a delete of what is gone", f"{_LIFECYCLE} test_a_delete_of_what_is_gone_succeeds_twice"),
    "L10": ("403 of a dead key", f"{_LIFECYCLE} test_a_dead_key_is_never_a_successful_delete"),
    "L11": ("403 that means gone", f"{_CLIENT} test_403_means_gone_where_the_key_is_seen_to_work"),
    "L12": ("in use", f"{_LIFECYCLE} test_a_thing_in_use_is_waited_for_and_then_told"),
    "L13": ("a delete that takes long", f"{_LIFECYCLE} test_a_delete_that_takes_long_is_asked_for_once_and_then_seldom"),
    "L14": ("an update rolled back half way", f"{_LIFECYCLE} test_an_update_that_fails_half_way_is_rolled_back"),
    "L15": (
        "an immutable property changes",
        f"{_LIFECYCLE} test_another_shelf_is_another_thing_and_the_old_one_goes_after_the_new_one_works",
    ),
    "L16": (
        "names of two generations",
        "unit/test_resources_identity.py test_a_generation_depends_on_what_replaces_and_on_nothing_else",
    ),
    "L17": ("nothing differs", "vendors/test_every_fault.py test_nothing_is_written_where_nothing_differs"),
    "L18": ("everything is a string", "unit/test_core_properties.py test_text_becomes_what_it_means"),
    "L19": ("changed or deleted by hand", f"{_LIFECYCLE} test_what_somebody_changed_by_hand_is_repaired"),
    "L20": ("429 in its forms", f"{_HTTP} test_a_429_is_waited_for_as_asked"),
    "L21": (
        "two hundred resources throttled",
        "vendors/test_throttled.py test_all_get_through_with_few_calls_more_than_are_needed",
    ),
    "L22": ("failures and broken answers", f"{_HTTP} test_a_post_is_not_repeated_when_it_may_have_had_its_effect"),
    "L23": ("answers of any form", f"{_CLIENT} test_any_answer_can_be_read"),
    "L24": ("pages that repeat or never end", f"{_CLIENT} test_pages_that_lead_in_a_circle_end"),
    "L25": ("a key that flaps", "unit/test_confluent_api_key.py test_two_successes_in_a_row_make_a_key_ready"),
    "L26": ("rights that come late", "vendors/test_handshake.py test_what_is_mended_while_the_deploy_waits_is_enough"),
    "L27": ("role and integration need one another", "vendors/test_handshake.py test_the_circle_closes_and_tables_follow"),
    "L28": (
        "an integration made a hundred times",
        "unit/test_snowflake_trust.py test_a_hundred_updates_neither_make_nor_change_anything",
    ),
    "L29": ("Lambda's time ends", f"{_LIFECYCLE} test_an_invocation_that_runs_out_of_time_is_carried_on_by_the_next"),
    # CDK's provider framework sends the answer; we never see more of the address than what an error may quote.
    "L30": ("the signed address in a log", "unit/test_core_redaction.py test_what_looks_like_a_secret_is_taken_out"),
    "L31": ("an answer that is too long", "unit/test_resources_handler.py test_outputs_fit_into_cloudformation_s_answer"),
    "L32": ("is_complete twice at once", f"{_LIFECYCLE} test_the_same_create_at_once_at_every_call_is_one_thing"),
    "L33": (
        "states of a Flink statement",
        "unit/test_confluent_flink_statement.py test_a_failed_statement_is_told_and_a_stopped_one_started",
    ),
    "L34": (
        "suspended after it ran",
        "unit/test_confluent_tableflow_topic.py test_one_that_failed_or_is_suspended_is_resumed_and_told",
    ),
    "L35": ("what the vendors leave", "unit/test_purge.py test_a_database_goes_with_its_tables_and_no_other"),
    "L36": ("two stacks in one account", "vendors/test_scheduler.py Scheduler"),
    "I1": ("wildcards", "infra/test_policies.py test_no_policy_says_too_much"),
    "I2": ("trust without an id", "infra/test_trust.py test_snowflakes_users_come_each_with_its_own_id"),
    "I3": ("a right that creeps in", "infra/test_matrix.py test_a_right_that_creeps_in_is_seen"),
    "I4": ("a secret in a template", "infra/test_secrets_scan.py test_there_is_none_in_an_assembly"),
    "I5": ("a secret in what is shown", "unit/test_core_redaction.py test_a_secret_is_never_shown"),
    "I6": ("an open bucket", "infra/test_intent.py test_buckets_are_reached_by_tls_only"),
    "I7": ("a policy that locks out", "infra/test_intent.py test_no_bucket_policy_or_key_policy_locks_out_who_is_let_in"),
    "I8": ("keys of KMS", "infra/test_intent.py test_keys_rotate_and_admit_nobody_else_but_alarms"),
    "I9": ("logs without end", "infra/test_intent.py test_every_log_group_ends"),
    "I10": ("injection by a name", "unit/test_snowflake_sql.py test_no_text_of_up_to_five_signs_that_matter_breaks_out"),
    "I11": ("injection by a text", "unit/test_snowflake_sql.py test_no_value_changes_a_statement"),
    "I12": ("bad arguments", "unit/test_deployment_file.py test_all_mistakes_are_told_at_once_each_with_its_line"),
    "I13": (
        "a secret in the file",
        "unit/test_deployment_file.py test_a_secret_is_refused_wherever_it_stands_and_never_repeated",
    ),
    "I14": ("an address that an answer names", f"{_CLIENT} test_no_credential_goes_to_a_host_that_an_answer_merely_names"),
    "I15": ("TLS that proves nothing", "unit/test_core_tls.py test_a_certificate_that_nobody_vouches_for_gets_nothing"),
    "I16": ("dependencies without a hash", "test_locks.py test_every_pin_has_its_hashes"),
    "I17": ("an event of another account", "unit/test_resources_handler.py test_a_foreign_event_is_refused"),
    "I18": ("pickle, eval, a shell", "test_locks.py test_the_linter_bans_what_runs_foreign_text"),
    "I19": ("a gate that is off", "infra/test_rule_pack.py test_what_is_planted_ends_the_synthesis"),
    "I20": ("data that goes by surprise", "infra/test_intent.py test_data_goes_or_stays_as_the_file_says"),
    "N1": ("an event twice or late", "unit/test_notification_post.py test_n1_an_event_that_comes_twice_or_late_is_told_once"),
    "N2": ("missed schedules", "unit/test_notification_runs.py test_n2_weeks_that_were_missed_are_told_in_their_order_each_once"),
    "N3": (
        "a mail that fails",
        "unit/test_notification_post.py test_n3_whatever_call_fails_or_kills_each_mail_goes_out_and_n4_at_most_twice",
    ),
    "N4": (
        "a mail whose answer is lost",
        "unit/test_notification_post.py test_n4_a_second_copy_carries_the_same_subject_with_the_runs_id",
    ),
    "N5": (
        "a job that fails",
        "unit/test_notification_messages.py test_n5_a_run_that_failed_is_told_once_in_plain_words_and_to_engineers_with_its_code",
    ),
    "N6": ("a job that never starts", "unit/test_watch.py test_n6_an_export_that_never_starts_is_late_once_its_grace_is_over"),
    "N7": ("recipients who did not confirm", "unit/test_watch.py test_n7_recipients_who_did_not_confirm_are_counted"),
    "N8": (
        "a link that opens by itself",
        "unit/test_notification_messages.py test_n8_no_link_is_signed_and_every_link_asks_for_a_sign_in",
    ),
    "N9": ("injection into a subject", "unit/test_notification_text.py test_n9_every_subject_is_one_that_sns_takes"),
    "N10": (
        "a mail about a mail",
        "unit/test_notification_handler.py test_n10_nothing_but_glues_own_events_of_this_account_makes_a_mail",
    ),
}


def test_every_row_is_there():
    counted = (("L", 36), ("I", 20), ("N", 10))
    assert list(ROWS) == [f"{letter}{number}" for letter, last in counted for number in range(1, last + 1)]


@pytest.mark.parametrize("row", ROWS)
def test_the_test_of_a_row_exists(row):
    file, name = ROWS[row][1].split()
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
