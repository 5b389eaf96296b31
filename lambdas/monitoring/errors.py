"""Why something could not be measured. None of these ends the watch: it counts them in a metric of their own, with an alarm."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

NOT_SET: Final = ErrorRow(
    "WATCH-NOT-SET",
    "The watch doesn't know how to look",
    "The function's environment lacks the secret or the id that this hop needs.",
    "Deploy again; don't edit the function by hand.",
)
NO_TABLE: Final = ErrorRow(
    "WATCH-NO-TABLE",
    "Glue has no such Iceberg table",
    "Tableflow has not shown the topic yet, its catalog integration is broken, or somebody removed the table.",
    "Look at the topic's Tableflow page in Confluent's console. A new topic takes up to half an hour.",
)
NO_TABLEFLOW: Final = ErrorRow(
    "WATCH-NO-TABLEFLOW",
    "Tableflow is off for a topic",
    "Somebody disabled it in Confluent's console, or it was never enabled.",
    "Run `lakeferry status`, then `lakeferry deploy`.",
)
NO_COMMIT: Final = ErrorRow(
    "WATCH-NO-COMMIT",
    "A table without a snapshot",
    "No record has come into the topic since its table was made.",
    "Look whether anything writes to the topic.",
)
NOT_REFRESHING: Final = ErrorRow(
    "WATCH-NOT-REFRESHING",
    "Snowflake doesn't follow a table any more",
    "The roles that trust Snowflake changed, or the table has deletes that Snowflake can't read.",
    "Read the reason above; when it is gone, a table that is STALLED recovers by itself and one that is STOPPED is made anew.",
)
NO_VALUE: Final = ErrorRow(
    "WATCH-NO-VALUE",
    "A secret has no current value",
    "It was never filled, or it is being deleted.",
    "Deploy again; a key is made where the secret is empty.",
)
CONTRACT: Final = ErrorRow(
    "WATCH-CONTRACT",
    "An export whose windows nobody knows",
    "Its contract did not ship with the function, or can't be read.",
    "Check the contract with `lakeferry export check` and deploy again.",
)

ERRORS: Final = (NOT_SET, NO_TABLE, NO_TABLEFLOW, NO_COMMIT, NOT_REFRESHING, NO_VALUE, CONTRACT)
