"""Which tests check which module: for each module the files that take seconds, then those that take
minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_RESOURCES: Final = (
    "unit/test_resources_state unit/test_resources_order unit/test_resources_patience "
    "unit/test_resources_requests unit/test_resources_ledger unit/test_resources_identity "
    "unit/test_resources_handler unit/test_core_stores unit/test_resources_sight "
    "unit/test_resources_lifecycle unit/test_resources_found"
)
_ROTATION: Final = (
    "unit/test_rotation_steps unit/test_rotation_versions unit/test_rotation_grace "
    "unit/test_rotation_key_tests unit/test_rotation_handler vendors/test_rotation_confluent_keys "
    "vendors/test_rotation_snowflake_logins vendors/test_rotation_ages vendors/test_rotation_protocol "
    "vendors/test_rotation_confluent vendors/test_rotation_snowflake"
)
_ROTATION_LONG: Final = (
    "vendors/test_rotation_machine vendors/test_rotation_crashes vendors/test_rotation_walk"
)
_MAILS: Final = (
    "unit/test_whole_mails unit/test_whole_pages unit/test_news unit/test_mail_limits "
    "unit/test_announced_details unit/test_undelivered unit/test_notification_failures "
    "unit/test_notification_runs unit/test_notification_messages unit/test_notification_text "
    "unit/test_notification_post unit/test_notification_handler unit/test_notification_recipients "
    "unit/test_mails_over_ses unit/test_announcements"
)
_LINKS: Final = (
    "unit/test_link_token_limits unit/test_link_generations unit/test_link_tokens unit/test_link_opening "
    "unit/test_link_handler"
)
_REPORT: Final = (
    "unit/test_report_values unit/test_report_columns unit/test_chart_lines unit/test_figures "
    "unit/test_wording unit/test_report unit/test_report_text unit/test_charts unit/test_report_safety"
)
_CONFLUENT: Final = (
    "unit/test_confluent_lookup unit/test_confluent_keys unit/test_confluent_organization "
    "unit/test_confluent_client unit/test_confluent_api_key unit/test_confluent_resources "
    "unit/test_confluent_tableflow_types unit/test_confluent_flink_statement unit/test_confluent_shape"
)
_SNOWFLAKE: Final = (
    "unit/test_snowflake_names unit/test_snowflake_login unit/test_snowflake_client "
    "unit/test_snowflake_keypair unit/test_snowflake_base_kinds unit/test_snowflake_grant "
    "unit/test_snowflake_tables unit/test_snowflake_trust unit/test_snowflake_user "
    "unit/test_snowflake_user_settings unit/test_snowflake_view "
    "unit/test_snowflake_sql"
)
_CONTRACT: Final = (
    "unit/test_contract_limits unit/test_personal_rules unit/test_check_rules unit/test_contract_rules"
)
_JOB: Final = "spark/test_windows_of_time spark/test_values spark/test_events spark/test_aggregates"
_KILL: Final = "faults/test_kill faults/test_races faults/test_storage"

SELECTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "config/deployments/rules.py": ("unit/test_deployment_rules", "unit/test_deployment_file"),
    "config/deployments/topic_rules.py": ("unit/test_topic_rules", "unit/test_deployment_file"),
    "config/deployments/export_rules.py": ("unit/test_export_rules", "unit/test_deployment_file"),
    "config/deployments/validation.py": (
        "unit/test_validation",
        "unit/test_deployment_file infra/test_names",
    ),
    "config/exports/contract_rules.py": (_CONTRACT, "unit/test_check"),
    "config/exports/personal_rules.py": (_CONTRACT, "unit/test_check"),
    "config/exports/cron.py": ("unit/test_cron_fields unit/test_cron", "unit/test_watch"),
    "config/exports/windows.py": (
        "unit/test_windows unit/test_which_windows unit/test_wording",
        "spark/test_windows_of_time",
    ),
    "glue_jobs/aggregate.py": ("spark/test_row_expressions", _JOB),
    "glue_jobs/aggregate_table.py": ("unit/test_kept_aggregates spark/test_aggregate_tables", _JOB),
    "glue_jobs/arguments.py": ("unit/test_arguments", "spark/test_windows_of_time"),
    "glue_jobs/columns.py": (
        "unit/test_column_misfits spark/test_row_expressions",
        f"spark/test_schema_evolution {_JOB}",
    ),
    "glue_jobs/export.py": (
        "unit/test_which_windows unit/test_arguments unit/test_job_end unit/test_idle_runs "
        "unit/test_windows_in_turn",
        f"spark/test_windows_of_time spark/test_aggregates {_KILL}",
    ),
    "glue_jobs/files.py": (
        "unit/test_table_files",
        "spark/test_nights spark/test_events spark/test_changing_tables spark/test_completeness",
    ),
    "glue_jobs/outcomes.py": ("unit/test_multipart_uploads unit/test_multipart", "spark/test_values"),
    "glue_jobs/pseudonyms.py": (
        "unit/test_spellings_of_people unit/test_pseudonym_values",
        "spark/test_pseudonyms spark/test_key_leaks faults/test_keys",
    ),
    "glue_jobs/ranges.py": (
        "unit/test_multipart unit/test_ranges",
        "spark/test_planned_rows spark/test_events spark/test_windows_of_time",
    ),
    "glue_jobs/rows.py": (
        "unit/test_order_of_rows spark/test_planned_rows spark/test_row_expressions",
        "spark/test_events spark/test_pseudonyms spark/test_values spark/test_aggregates "
        "spark/test_schema_evolution spark/test_expression_guard spark/test_windows_of_time",
    ),
    "glue_jobs/runs.py": (
        "unit/test_run_records unit/test_publish unit/test_which_windows",
        f"spark/test_windows_of_time {_KILL}",
    ),
    "glue_jobs/source.py": (
        "unit/test_pinned_table unit/test_idle_runs",
        "spark/test_events spark/test_schema_evolution spark/test_changing_tables spark/test_windows_of_time "
        "spark/test_oracle",
    ),
    "glue_jobs/store.py": (
        "unit/test_store unit/test_aws_denials unit/test_publish unit/test_multipart",
        f"spark/test_windows_of_time {_KILL}",
    ),
    "glue_jobs/window.py": (
        "unit/test_window_decisions unit/test_window_export unit/test_window_failures",
        "spark/test_windows_of_time spark/test_changing_tables spark/test_completeness spark/test_aggregates "
        "spark/test_grain faults/test_kill faults/test_races faults/test_storage faults/test_keys",
    ),
    "glue_jobs/delivery/cleanup.py": (
        "unit/test_listings unit/test_publish",
        f"spark/test_windows_of_time {_KILL}",
    ),
    "glue_jobs/delivery/counts.py": (
        "unit/test_counts unit/test_multipart_uploads unit/test_multipart unit/test_manifest",
        "spark/test_windows_of_time",
    ),
    "glue_jobs/delivery/csv.py": ("unit/test_csv", "spark/test_values"),
    "glue_jobs/delivery/datapackage.py": ("unit/test_datapackage unit/test_datapackage_documents", ""),
    "glue_jobs/delivery/manifest.py": (
        "unit/test_manifest_documents unit/test_manifest unit/test_publish unit/test_datapackage",
        "spark/test_windows_of_time",
    ),
    "glue_jobs/delivery/multipart.py": (
        "unit/test_multipart_uploads unit/test_multipart",
        "spark/test_values faults/test_storage faults/test_retried_tasks",
    ),
    "glue_jobs/delivery/publish.py": (
        "unit/test_listings unit/test_publish",
        f"spark/test_windows_of_time {_KILL}",
    ),
    "glue_jobs/delivery/verify.py": (
        "unit/test_file_stats unit/test_file_checks unit/test_verify unit/test_unique_key unit/test_counts "
        "unit/test_formats",
        "spark/test_windows_of_time",
    ),
    "glue_jobs/delivery/report/values.py": (_REPORT, ""),
    "glue_jobs/delivery/report/wording.py": (_REPORT, ""),
    "lambdas/confluent/client.py": (_CONFLUENT, "vendors/test_first_deployment"),
    "lambdas/confluent/errors.py": (f"unit/test_errors {_CONFLUENT}", "vendors/test_first_deployment"),
    "lambdas/confluent/key_services.py": (_CONFLUENT, "vendors/test_rotation_confluent"),
    "lambdas/custom_resources/cleanup.py": ("unit/test_cleanup_requests unit/test_cleanup", ""),
    "lambdas/custom_resources/provider.py": (
        _RESOURCES,
        "unit/test_resources_faults vendors/test_first_deployment",
    ),
    "lambdas/custom_resources/reconcile.py": (
        _RESOURCES,
        "unit/test_resources_faults vendors/test_first_deployment",
    ),
    "lambdas/custom_resources/request.py": (
        _RESOURCES,
        "unit/test_resources_faults vendors/test_first_deployment",
    ),
    "lambdas/custom_resources/state.py": (
        _RESOURCES,
        "unit/test_resources_faults vendors/test_resources_tables",
    ),
    "lambdas/links/opening.py": (_LINKS, ""),
    "lambdas/notifications/announcement.py": (_MAILS, ""),
    "lambdas/notifications/attachments.py": (_MAILS, ""),
    "lambdas/notifications/mailer.py": (_MAILS, ""),
    "lambdas/notifications/message.py": (_MAILS, ""),
    "lambdas/notifications/outcome.py": (_MAILS, ""),
    "lambdas/notifications/page.py": (_MAILS, ""),
    "lambdas/notifications/ses_mailer.py": (_MAILS, ""),
    "lambdas/notifications/undelivered.py": (_MAILS, ""),
    "lambdas/rotation/confluent.py": (_ROTATION, _ROTATION_LONG),
    "lambdas/rotation/snowflake.py": (_ROTATION, _ROTATION_LONG),
    "lambdas/rotation/steps.py": (_ROTATION, _ROTATION_LONG),
    "lambdas/rotation/versions.py": (_ROTATION, _ROTATION_LONG),
    "lambdas/shared/link_tokens.py": (_LINKS, ""),
    "lambdas/shared/http.py": (
        "unit/test_core_http_limits unit/test_core_http unit/test_core_tls",
        f"{_CONFLUENT} vendors/test_wire",
    ),
    "lambdas/shared/properties.py": ("unit/test_core_limits unit/test_core_properties", "infra/test_kinds"),
    "lambdas/shared/redaction.py": ("unit/test_core_limits unit/test_core_redaction", ""),
    "lambdas/shared/secrets.py": ("unit/test_core_limits unit/test_core_stores", ""),
    "lambdas/snowflake/client.py": (_SNOWFLAKE, ""),
    "lambdas/snowflake/keypair.py": ("unit/test_snowflake_keypair", _SNOWFLAKE),
    "lambdas/snowflake/sql.py": ("unit/test_snowflake_names unit/test_snowflake_sql", _SNOWFLAKE),
    "config/deployments/lineage.py": (
        "unit/test_lineage_details unit/test_lineage",
        "unit/test_deployment_file",
    ),
    "config/deployments/ownership_rules.py": ("unit/test_topic_rules", "unit/test_deployment_file"),
    "config/deployments/source_rules.py": ("unit/test_source_rules", "unit/test_deployment_file"),
    "config/exports/topic_schema.py": (
        "unit/test_imported_schemas unit/test_topic_schema",
        "unit/test_check",
    ),
    "lakeferry/health/source.py": (
        "unit/test_unseen_tables unit/test_catalog_sources unit/test_source_checks",
        "",
    ),
    "lakeferry/topics/avro.py": (
        "unit/test_schema_differences unit/test_imported_schemas",
        "unit/test_source_checks",
    ),
    "lakeferry/topics/schemas.py": (
        "unit/test_schema_differences unit/test_catalog_sources unit/test_source_checks "
        "unit/test_cluster_imports unit/test_source_registry",
        "unit/test_discovery unit/test_derived_registered_schemas",
    ),
    "lakeferry/topics/tables.py": (
        "unit/test_schema_differences unit/test_unseen_tables unit/test_source_checks",
        "",
    ),
    "config/errors.py": ("unit/test_errors", ""),
    "config/exports/personal.py": ("unit/test_personal", "unit/test_contract_rules unit/test_check"),
    "config/toml_model.py": (
        "unit/test_toml_model unit/test_toml_values",
        "unit/test_check unit/test_deployment_file",
    ),
    "glue_jobs/borders.py": ("unit/test_borders", "spark/test_contract_edits spark/test_windows_of_time"),
    "glue_jobs/completeness.py": (
        "unit/test_stated_completeness spark/test_partition_proofs",
        "spark/test_completeness spark/test_windows_of_time",
    ),
    "glue_jobs/decimals.py": ("spark/test_lost_digits", "spark/test_decimals"),
    "glue_jobs/event_lines.py": ("spark/test_row_expressions", _JOB),
    "glue_jobs/event_time.py": (
        "unit/test_event_time",
        "spark/test_events spark/test_dates_of_events spark/test_windows_of_time spark/test_nights",
    ),
    "glue_jobs/run_context.py": (
        "unit/test_run_context",
        "spark/test_windows_of_time spark/test_contract_edits",
    ),
    "glue_jobs/delivery/checks.py": (
        "unit/test_file_checks",
        "spark/test_windows_of_time spark/test_values",
    ),
    "glue_jobs/delivery/losses.py": (
        "unit/test_losses",
        "spark/test_contract_edits spark/test_changing_tables",
    ),
    "glue_jobs/delivery/personal_scan.py": ("unit/test_personal_numbers unit/test_personal_scan", ""),
    "glue_jobs/delivery/report/axes.py": (_REPORT, ""),
    "glue_jobs/delivery/report/charts.py": (_REPORT, ""),
    "glue_jobs/delivery/report/lines.py": (_REPORT, ""),
    "glue_jobs/delivery/report/scales.py": (_REPORT, ""),
    "lambdas/confluent/lookup.py": (_CONFLUENT, "vendors/test_ownership"),
    "lambdas/confluent/sight.py": (
        "unit/test_confluent_sight unit/test_confluent_organization",
        "vendors/test_hidden_objects",
    ),
    "lambdas/confluent/resources/acl.py": (_CONFLUENT, "vendors/test_first_deployment"),
    "lambdas/confluent/resources/api_key.py": (_CONFLUENT, "vendors/test_first_deployment"),
    "lambdas/confluent/resources/topic.py": (_CONFLUENT, "vendors/test_ownership"),
    "lambdas/confluent/services/base.py": (_CONFLUENT, "vendors/test_rotation_confluent"),
    "lambdas/shared/settings.py": (
        "unit/test_function_settings",
        "unit/test_resources_handler unit/test_rotation_handler unit/test_watch",
    ),
    "lambdas/snowflake/lookup.py": (_SNOWFLAKE, "vendors/test_hidden_snowflake_objects"),
    "lambdas/snowflake/resources/grant.py": (_SNOWFLAKE, ""),
    "lambdas/snowflake/resources/user.py": (_SNOWFLAKE, ""),
}
