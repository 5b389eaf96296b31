"""deployment-file.md: every key of a deployment file, from the model that reads it."""

from __future__ import annotations

from typing import Any, Final

from deployments.model import Deployment
from deployments.rules import RULES
from exports.toml_schema import json_schema
from tools.docs import markdown
from tools.docs.contract import sections

TITLE: Final = "Deployment file"
#: What each rule beyond single keys asks for.
_RULES: Final = {
    "names_are_unique": "The names of topics, statements, exports and Snowflake tables are unique, and the two buckets differ.",
    "tags_are_allowed": "No tag is called `project`, `stage` or `owner`, which Lakeferry sets, or begins with `aws:`.",
    "environment_has_id_and_name": "`environment_id` and `environment_name` are both set, or neither.",
    "topics_have_one_writer": "A topic is written by a statement, by Datagen or by your own producers. The settings of one "
    "that a statement creates are in the statement's create.sql.",
    "statements_exist": "`flink/<name>/` has create.sql and undo.sql, and `after` names statements above this one.",
    "schemas_exist": "The schema file exists and holds an Avro record. A topic with `[topics.tableflow]` has a "
    "schema, or Datagen or a statement that registers one.",
    "write_modes_match_cleanup_policies": "`write_mode` is APPEND for cleanup.policy `delete`, UPSERT for `compact`. A "
    "statement's changelog has no retractions.",
    "storage_is_readable": "Tables in managed storage aren't in Glue; of those in your bucket, all are, or none. `formats` has "
    "no DELTA.",
    "snowflake_can_read_tables": "A table in Snowflake needs `[snowflake]`, Glue and write mode APPEND.",
    "snowflake_names_differ_from_the_deployers": "User and warehouse of the readers aren't the deployer's.",
    "exports_match_topics": "The export's topic is in the file and a table in Glue, and the contract fits the topic's schema.",
    "grace_is_shorter_than_rotation": "`grace_days` is less than `every_days`.",
    "rows_outlive_windows": "For each export of the topic, `rows_days` is at least the length of a window in days, plus the days "
    "for which it is published again, plus one.",
}
_INTRO: Final = """\
`deployments/<stage>.toml` holds everything that a user decides; `cdk deploy --all -c stage=<stage>` deploys it. All
mistakes are reported at once, by key and line, before anything is created. Editors with [Taplo](https://taplo.tamasfe.dev) check
the file as you type, if its first line names the schema: `#:schema ../docs/reference/deployment.schema.json`.

It never holds a secret: text that looks like one is refused. Two secrets are created manually before the first deployment, and
the file names them."""
_DESTROY: Final = """\
| | `keep` | `delete` |
| --- | --- | --- |
| buckets with tables, exports and aggregates | stay | emptied and removed |
| Glue database of aggregates | stays | removed |
| Glue database of Tableflow's tables | stays, with its tables as they were | removed |
| pseudonymisation key | stays | removed |
| keys of Confluent Cloud and Snowflake, with their secrets | removed | removed |
| Kafka cluster, topics, Flink, Tableflow, objects in Snowflake | removed | removed |
| stacks | protected against deletion until you lift that | - |

Changing `delete` to `keep` deletes nothing: only a stack that is deleted as a whole removes leftovers. A new
deployment generates a new pseudonymisation key; to use the one that was kept, name its secret in `pseudonym_secret`."""


def text() -> str:
    """Raises LookupError where a rule isn't described."""
    undescribed = {rule.__name__ for rule in RULES} ^ _RULES.keys()
    if undescribed:
        raise LookupError(f"rules of deployment files and rules described here differ: {', '.join(sorted(undescribed))}")
    rules = "\n".join(f"- {_RULES[rule.__name__]}" for rule in RULES)
    return markdown.page(
        TITLE,
        _INTRO,
        *sections(Deployment, "", "The file"),
        f"## Rules beyond single keys\n\n{rules}",
        f"## What stays on destroy\n\n{_DESTROY}",
    )


def schema() -> dict[str, Any]:
    return json_schema(Deployment, title="Lakeferry deployment", description="Everything that a user decides about one stage.")
