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
    "names_are_unique": "No topic, statement, export or table in Snowflake is there twice, and the two buckets are two.",
    "tags_are_ours": "No tag is called `project`, `stage` or `owner`, which are set by themselves, or begins with `aws:`.",
    "environment_is_whole": "`environment_id` and `environment_name` are both there or both not.",
    "topics_have_one_origin": "A topic is written by a statement, by Datagen or by producers of your own. One that a statement "
    "makes has its settings in the statement's create.sql.",
    "statements_are_there": "`flink/<name>/` has create.sql and undo.sql, and `after` names statements that stand before.",
    "schemas_are_there": "A schema file that is named exists and holds an Avro record. A topic with `[topics.tableflow]` has a "
    "schema, or Datagen or a statement that registers one.",
    "write_modes_can_be": "`write_mode` is what Tableflow makes of the topic's cleanup.policy: APPEND of `delete`, UPSERT of "
    "`compact`. A statement's changelog can't be one of retractions.",
    "storage_can_be_read": "Managed storage isn't shown in Glue; tables in your bucket are all shown there, or none. `formats` "
    "has no DELTA.",
    "snowflake_can_show": "A table in Snowflake needs `[snowflake]`, Glue and write mode APPEND.",
    "snowflake_names_differ": "User and warehouse of the readers aren't the deployer's.",
    "exports_fit": "The export's topic is in the file and a table in Glue, and the contract fits the topic's schema.",
    "rotation_can_keep_up": "`grace_days` is less than `every_days`.",
    "rows_outlive_windows": "`rows_days` is at least the days of a window and those for which it is published again, of each "
    "export of the topic, and one more.",
}
_INTRO: Final = """\
`deployments/<stage>.toml` holds everything that a user decides; `cdk deploy --all -c stage=<stage>` makes what it says. All
mistakes are told at once, by key and line, before anything is made. Editors that know [Taplo](https://taplo.tamasfe.dev) check
while one types: the first line may name the schema, `#:schema ../docs/reference/deployment.schema.json`.

Secrets never stand in it: a text that looks like one is refused. Two of them are made by hand before the first deployment, and
the file has their names."""
_DESTROY: Final = """\
| | `keep` | `delete` |
| --- | --- | --- |
| buckets with tables, exports and aggregates | stay | emptied and removed |
| Glue database of aggregates | stays | removed |
| Glue database of Tableflow's tables | stays; its tables are as they were last | removed |
| pseudonymisation key | stays | removed |
| keys of Confluent Cloud and Snowflake, with their secrets | removed | removed |
| Kafka cluster, topics, Flink, Tableflow, objects in Snowflake | removed | removed |
| stacks | protected against deletion until you lift that | - |

Changing `delete` to `keep` deletes nothing: only a stack that is deleted as a whole takes leftovers with it. A new
deployment makes a new pseudonymisation key; name the one that was kept as `pseudonym_secret` to go on with it."""


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
