"""What lies behind each error code of an export: the likely cause, and what to do beyond the one sentence of the message."""

from __future__ import annotations

from typing import Final

#: (what it is, the likely cause, what to do), in Markdown, with links as seen from docs/reference.
EXPORT: Final[dict[str, tuple[str, str, str]]] = {
    "EXP-AGGREGATE-BUSY": (
        "The aggregate's table could not be brought up to date",
        "Other writers committed to the aggregate's table each time this run tried to. The file itself is published.",
        "Run again: the next run brings the table to what the manifest says. Nobody but Lakeferry should write to that table.",
    ),
    "EXP-AGGREGATE-TYPE": (
        "The aggregate's table has another type than the contract",
        "A column of the contract changed its type, and the Iceberg table that keeps the aggregate still has the old one.",
        "Rename the column in the contract, or drop the table: the next runs fill it again with windows that may still change.",
    ),
    "EXP-ARGUMENTS": (
        "The job was given arguments that it can't use",
        "An argument is missing or has the wrong form, or `--as-of` lies in the future. The message lists all mistakes.",
        "Correct them: [Job arguments](job-arguments.md).",
    ),
    "EXP-AWS-DENIED": (
        "AWS doesn't allow what the run needs",
        "The role lacks a permission for the bucket, key, table or secret that the message names.",
        "Compare the role with [IAM permissions](iam.md). A bucket policy or a KMS key's policy can refuse as well.",
    ),
    "EXP-AWS-FAILED": (
        "A service of AWS failed",
        "A service of AWS still answered with an error after retries. The message holds its code.",
        "Run again. If it stays so, look the code up in the service's documentation.",
    ),
    "EXP-AWS-NO-BUCKET": (
        "The bucket is not there",
        "There is no bucket of this name in this account and partition. Runs never make buckets.",
        "Check `--bucket` or `LAKEFERRY_BUCKET`, and the region.",
    ),
    "EXP-AWS-UNREACHABLE": (
        "AWS could not be asked",
        "No connection to AWS, or no credentials or region in the environment.",
        "Set `AWS_REGION` and `AWS_DEFAULT_REGION`, log in, and check the network.",
    ),
    "EXP-BOOKS": (
        "Two counts of the same rows differ",
        "Two counts of the same rows differ: every event read must have one fate, and every line too. Nothing is published then.",
        "Run again. If it stays so, report it with the run's record.",
    ),
    "EXP-CANCELLED": (
        "The run was stopped",
        "Somebody stopped the run, or the machine went away while it could still say so.",
        "Run again; what it left behind is removed first.",
    ),
    "EXP-CAST": (
        "A text is not the number or date that it should be",
        "Spark met a text that is not the number or date an expression or a column's type asks for.",
        "Use `try_cast()` or `try_to_timestamp()` and decide what the null means, or leave such events out by a `[[filter]]`.",
    ),
    "EXP-CHECK-BLOCKED": (
        "A check kept the file back",
        "A check of severity `block` failed, a column that must not be empty is, or a value is not among `allowed`.",
        "The message counts the rows. Correct the source and run again, or change the contract: "
        "[When a run is blocked or failed](../how-to/when-a-run-fails.md).",
    ),
    "EXP-CHECKSUM": (
        "The bucket returned other bytes than were written",
        "What S3 returned is not what was written.",
        "Run again. If it stays so, something between the job and S3 changes bytes.",
    ),
    "EXP-CONTRACT": (
        "The contract has mistakes, or there is none of this name",
        "The contract has mistakes, or there is no export of this name. The message lists all of them, by key and line.",
        "Correct them: [Export contract](export-contract.md). `lakeferry export check FILE` tells the same, without a run.",
    ),
    "EXP-DIED": (
        "A run ended without saying how",
        "In a run's record only: its process was killed, or its machine went away, before it could say how it ended.",
        "Nothing. The run that wrote this into the record removed what the dead one left, and did its windows again.",
    ),
    "EXP-DISK-FULL": (
        "The disk was full",
        "Spark sorts on disk what memory can't hold, and the disk was full.",
        "Free space, set `SPARK_LOCAL_DIRS` to a larger disk, or give the Glue job larger workers.",
    ),
    "EXP-DIVISION": (
        "An expression divides by zero",
        "An expression divides by zero; under ANSI rules that is an error.",
        "Use `try_divide()`, or leave the rows out by a `[[filter]]`: expressions see only rows that pass.",
    ),
    "EXP-EMPTY": (
        "The window has no rows, and the contract wants some",
        'The window has no rows, and the contract says `on_empty = "fail"`.',
        "Check that the topic had events. The run's record tells how many were read, and what became of them.",
    ),
    "EXP-EVENTS-LOST": (
        "The table no longer has all events of a published window",
        "The window was about to be published again, but the table has fewer events for it than the published file was made of, "
        "or a partition's events begin later: Tableflow's retention (`rows_days`) removed them, or the table was made again. The "
        "published file stays.",
        "Let `rows_days` be longer than a window and `restate_for_days` together, or lower `restate_for_days`. To publish "
        "without these events all the same, run the export once with `--accept-fewer-events`. If the contract now reads other "
        "events, count its version up.",
    ),
    "EXP-EXPRESSION": (
        "An expression of the contract can't be used",
        "Spark's parser doesn't take an expression of the contract, or it uses what a contract may not.",
        "See [Expressions](expressions.md). `lakeferry export check FILE` finds the same before a run.",
    ),
    "EXP-HEADER": (
        "The finished file doesn't begin with its header",
        "The finished file does not begin with its header.",
        "Run again. If it stays so, report it with the run's record.",
    ),
    "EXP-INVALID-EVENTS": (
        "Too many events have no valid time or no key",
        "More than `source.max_invalid_percent` of the events have no time between `source.earliest` and a day after the table's "
        "last commit, or no key. A file without them would look complete.",
        "Correct the source, or `source.event_time`, `source.earliest` or `deduplicate.key` of the contract. If such events are "
        "to be expected, raise `source.max_invalid_percent`.",
    ),
    "EXP-KEY-FORM": (
        "The pseudonymisation key has another form than it must",
        'The secret exists, but it is not JSON like `{"key": "<base64>"}` with a key of 32 to 64 bytes.',
        "Store it in that form: [Keep personal data out](../how-to/keep-personal-data-out.md#make-the-key).",
    ),
    "EXP-KEY-MISSING": (
        "The run doesn't know the pseudonymisation key",
        "The contract hashes columns, and the run was not told which secret holds the key.",
        "Give `--pseudonym-secret`, or set `LAKEFERRY_PSEUDONYM_SECRET`.",
    ),
    "EXP-KEY-UNREADABLE": (
        "The pseudonymisation key can't be read",
        "The secret doesn't exist, is about to be deleted, or the role may not read or decrypt it.",
        "Check the name and [IAM permissions](iam.md).",
    ),
    "EXP-LATE": (
        "The table's data doesn't reach to the end of the window yet",
        "The table's last commit that brought events is older than the window's end, or it is less than an hour younger and the "
        "table has no newer events of some Kafka partition. So events of the window may still be on their way.",
        "Run again when newer data has arrived. If Tableflow is suspended, resume it first. "
        '`on_late = "publish"` publishes anyway and marks the file as late.',
    ),
    "EXP-MANIFEST-BUSY": (
        "The manifest could not be written",
        "S3 refused the conditional write of the manifest fifty times: other runs keep publishing the window, or something "
        "between the job and S3 spoils the condition.",
        "Run again. If it stays so, see in `runs/` who else works on the window, and whether the storage knows `If-Match`.",
    ),
    "EXP-MEMORY": (
        "Spark ran out of memory",
        "An executor or the driver ran out of memory.",
        "Give larger or more workers. One group or key with very many rows can be the reason.",
    ),
    "EXP-NOT-A-NUMBER": (
        "A number is NaN or infinite",
        "A double or float is NaN or infinite, and no decimal can hold it.",
        "Leave such events out by a `[[filter]]` with `isnan()`, or correct the source.",
    ),
    "EXP-NOT-ICEBERG": (
        "The table is not an Iceberg table",
        "The Glue table is there but names no Iceberg metadata.",
        "Name a table that Tableflow writes, by `--table` where it isn't called like the topic.",
    ),
    "EXP-OVERFLOW": (
        "A number has more digits than its column takes",
        "A number has more digits than its column's type, or a sum grew past it.",
        "Widen the type in the contract, and count up its version if readers may notice.",
    ),
    "EXP-PERSONAL-DATA": (
        "The file may hold personal data, and was kept back",
        "The finished file was searched, and a text column that is neither hashed nor kept on purpose holds what looks like an "
        "e-mail address or an international telephone number. The message names column and count, never a value.",
        "Give the column a treatment, or `keep` with a reason: [Keep personal data out](../how-to/keep-personal-data-out.md).",
    ),
    "EXP-RECORDS": (
        "The finished file can't be read back",
        "The finished file can't be read back as the contract describes it.",
        "Run again. If it stays so, report it with the run's record.",
    ),
    "EXP-SCHEMA": (
        "The topic's Avro schema can't be used",
        "The Avro schema of the contract's topic is missing, is not JSON, or is not a record.",
        "Give it with `--schema FILE`. The schemas that ship are in `topics/`.",
    ),
    "EXP-SCHEMA-CHANGED": (
        "A field that the contract reads is gone or another one",
        "A field that the contract reads is gone, was renamed, or was dropped and added again, so that old events read as null.",
        "Change the contract to the field's new name, put the field back, or list it in `source.replaced_fields` if meant.",
    ),
    "EXP-SNAPSHOT-EXPIRED": (
        "The snapshot went away while it was read",
        "Tableflow expired the pinned snapshot while the run read it.",
        "Run again. If it happens often, keep snapshots longer or give the job more workers.",
    ),
    "EXP-TABLE-MISSING": (
        "The table is not in the Glue catalog",
        "The Glue catalog has no such table: the database or the topic's name is wrong, or Tableflow's Glue integration is off.",
        "The database is the Kafka cluster's id, like `lkc-abc123`. Check that Tableflow is on for the topic, and that the "
        "integration has synchronised.",
    ),
    "EXP-TABLE-NOT-READY": (
        "The table has no data yet",
        "The table exists, but nothing has been committed to it yet.",
        "Wait for the topic's first commit, then run again.",
    ),
    "EXP-TIME-LIMIT": (
        "The run's time limit has passed",
        "The run took longer than `--time-limit-minutes`, or its process was suspended. Other runs may remove its files, so it "
        "publishes nothing more. What it published before stays.",
        "Run again: the next run carries on. If that takes as long, raise the limit (`glue_timeout_minutes` in the deployment "
        "file), or lower `window.catch_up`.",
    ),
    "EXP-TYPE-CHANGED": (
        "A field's type is not the one in the contract",
        "A field's type in the table isn't what the contract says, or an expression doesn't fit it. No digit is lost silently.",
        "Correct the type or the expression in the contract, and count up its version.",
    ),
    "EXP-UNEXPECTED": (
        "Something that exports have no name for",
        "Something that Lakeferry has no name for. The log holds classes and frames, without data.",
        "Run again. If it stays so, report it with the run's record and the log.",
    ),
}
