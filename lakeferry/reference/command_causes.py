"""What lies behind each error code of the commands: the likely cause, and what to do beyond the one sentence of the message."""

from __future__ import annotations

from typing import Final

#: (what it is, the likely cause, what to do), in Markdown, with links as seen from docs/reference.
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "AWS-ACCOUNT": (
        "This is another AWS account than the deployment's",
        "The deployment file names an AWS account, and the credentials are those of another one.",
        "Log in to the account that the message names, or choose another stage.",
    ),
    "AWS-CREDENTIALS": (
        "Nobody is logged in to AWS",
        "There are no AWS credentials in the environment or the profile, or they have expired.",
        "Log in: `aws sso login`, or set `AWS_PROFILE`.",
    ),
    "AWS-UNREACHABLE": (
        "AWS doesn't answer",
        "The network, a proxy, a region that doesn't exist, or `AWS_ENDPOINT_URL`.",
        "Check them, and run the command again.",
    ),
    "DESTROY-DIFFERS": (
        "The deployment file and the deployed stacks disagree about the data",
        "`on_destroy` was changed in the deployment file and not deployed since. Deleting the stacks would do what they were "
        "deployed with, and `lakeferry destroy --plan` shows that.",
        "Set `on_destroy` to what you want, `lakeferry deploy`, then destroy: [Tear down](../how-to/tear-down.md). Nothing was "
        "removed.",
    ),
    "DESTROY-STOPPED": (
        "Nobody watches the deletion any more",
        "Ctrl-C. CloudFormation goes on deleting the stacks that the message names; what was deleted so far is gone.",
        "`lakeferry inventory` lists what is there, and `lakeferry destroy` continues once CloudFormation is done.",
    ),
    "DESTROY-PROTECTED": (
        "The deployment is protected against deletion",
        'Its stacks were deployed with `on_destroy = "keep"`, which protects them; or `deletion_protection` of the Kafka '
        "cluster is on, in the deployed stack or in the file.",
        "Decide about the data, as [Tear down](../how-to/tear-down.md) says: change the key and deploy, or lift the protection "
        "of each stack. Nothing was removed.",
    ),
    "LEFT-OVER": (
        "Something of the deployment is there that no stack has any more",
        "A deployment or a `destroy` was broken off, or CloudFormation gave a resource up. Each thing stands in the list, with "
        "the reason why it counts as ours.",
        "`lakeferry destroy --plan`, then `lakeferry destroy`. If it comes back, the lines before the list say "
        "why it would not go.",
    ),
    "NOT-ASKED": (
        "A vendor, or a kind of things, could not be asked for",
        "A key is missing or refused, or the role that you are logged in with may not list something. What can't be listed may "
        "still be there.",
        "Mend what the message names: `lakeferry secrets set confluent`, or the role's permissions. Then ask again.",
    ),
    "NOT-CONFIRMED": (
        "Nobody has said that the deployment may be destroyed",
        "`lakeferry destroy` wants the stage's name once more, and there was nobody to ask for it.",
        "`lakeferry destroy --stage dev --confirm dev`. `--yes` is not enough. Nothing was removed.",
    ),
    "STACK-BUSY": (
        "CloudFormation is at work on the deployment",
        "A `deploy` is under way, here or elsewhere, or a stack is rolling back.",
        "Wait until it has ended, or cancel it in CloudFormation's console, and run the command again.",
    ),
    "WORLD-SILENT": (
        "A vendor of the deployment doesn't answer to its key",
        "The secret with the key is gone, or the vendor refuses it. The stacks would need it to remove what they "
        "have made there.",
        "`lakeferry secrets set confluent` or `snowflake` with a key that works, then destroy. Nothing was removed.",
    ),
    "NO-SNOWFLAKE": (
        "The deployment has no Snowflake",
        "The command is about Snowflake, and the deployment file has no `[snowflake]`.",
        "Choose another stage, or add the section: [Deployment file](deployment-file.md).",
    ),
    "UNEXPECTED": (
        "Something that Lakeferry has no name for",
        "A mistake in Lakeferry, or something that nobody foresaw. `.lakeferry/last-error.txt` holds where it came from, without "
        "secrets; `--verbose` shows the same.",
        "Run the command again. If it stays so, report it with that file.",
    ),
    "UNKNOWN-CODE": (
        "Nothing of ours has this code",
        "The code that `lakeferry explain` was asked for is misspelt, or the vendor's own.",
        "`lakeferry explain` lists all codes.",
    ),
    "USAGE": (
        "The words of the command can't be understood",
        "A command, option or argument doesn't exist, is missing, or has a value that it can't have.",
        "`lakeferry COMMAND --help` shows what the command takes, as does [Command line](command-line.md).",
    ),
    "AS-OF": (
        "A moment that is none",
        "`--as-of` is not an instant: it needs a date, a time and an offset.",
        "Write it like `2026-11-16T06:00:00Z` or `2026-11-16T07:00:00+01:00`.",
    ),
    "DEMO-EVENTS": (
        "Lines of the events file can't be used",
        "Lines of the events file are not JSON, or don't fit the topic's schema. The first 20 are told by line and field.",
        "Correct them; nothing was written. The form: [Try it on your own events](../how-to/try-your-own-events.md).",
    ),
    "DOCTOR": (
        "Something stands in the way, or is broken",
        "At least one check of `lakeferry doctor` failed. The message names those that are to be mended; others only follow from "
        "them. `details` hold all checks.",
        "Mend what the arrows of the list say, from the top, and run `lakeferry doctor` again.",
    ),
    "DEPLOYMENT-FILE": (
        "The deployment file has mistakes, or is not there",
        "The deployment file has mistakes, or there is none for this stage. The message lists all of them, by key and line.",
        "Correct them: [Deployment file](deployment-file.md).",
    ),
    "DIAGRAM-STALE": (
        "The page of pictures shows another infrastructure",
        "The stacks changed since the page of pictures was written.",
        "`make synth`, `lakeferry diagram --write`, and look at the difference.",
    ),
    "NO-TEMPLATES": (
        "There are no templates of this stage",
        "Nothing was synthesised for this stage in this tree.",
        "`make synth STAGE=dev`, with the stage that you mean.",
    ),
    "DEMO-EXPORT": (
        "The export doesn't fit the events",
        "The export reads another topic than the events are of, or no shipped export reads that topic.",
        "Name a contract for this topic with `--export`.",
    ),
    "DEMO-FILE": (
        "The events file can't be read",
        "The events file is missing, is a folder, or may not be read.",
        "Give the path of a JSON Lines file.",
    ),
    "DEMO-SCHEMA": (
        "The topic has no schema that can be used",
        "The topic doesn't ship with Lakeferry and no schema was given, or the schema can't be used.",
        "Give an Avro record schema with `--schema FILE`.",
    ),
    "DEMO-TOPIC": (
        "Events without a topic, or a topic without events",
        "One of `--events` and `--topic` was given without the other.",
        "Give both, or neither for generated events.",
    ),
    "NO-CDK": (
        "CDK's command line can't be had",
        "There is no Node that CDK supports, or the pinned command line could not be fetched. The message says which.",
        "Run `make setup`; check the network.",
    ),
    "NO-FLINK": (
        "Flink is not installed",
        "A rehearsal runs Flink SQL on a real Flink, which it installs into `.venv-flink` (0.7 GB) the first time. That failed.",
        "Check the network and the free space, then run the command again.",
    ),
    "NOT-EMBEDDED": (
        "This is not the embedded AWS",
        "A rehearsal makes and destroys without asking, so it works only where AWS says that the account is 000000000000.",
        "Unset `AWS_ENDPOINT_URL` and `AWS_PROFILE`, and run it again. Nothing was made.",
    ),
    "NOT-PROVEN": (
        "The rehearsal found something wrong",
        "A phase failed, or what was seen contradicts a claim. The message says which and what was seen; later phases were not "
        "tried.",
        "Look at `out/rehearsal.html` and `out/rehearsal/cdk.log`. `lakeferry rehearse --keep` leaves everything running after "
        "the last proof before the end.",
    ),
    "REHEARSAL-FILE": (
        "The deployment file can't be rehearsed",
        "A rehearsal proves what the `deployments/dev.toml` that ships deploys: its two topics, its export and Snowflake. It has "
        "no events for other topics, and nothing to compare other exports with.",
        "Rehearse with the `deployments/dev.toml` that ships. `lakeferry doctor` and `lakeferry plan` look at your own file.",
    ),
    "SIMULATOR": (
        "A vendor's simulator did not start",
        "The message holds its last lines.",
        "Run `make setup`, then the command again.",
    ),
    "DEMO-IN-USE": (
        "Another command uses the demo",
        "A demo, a query or an export of another process works with `.lakeferry/demo` in this clone; two at once would destroy "
        "each other's tables.",
        "Wait until that process ends, or stop it, then run the command again.",
    ),
    "EMBEDDED-AWS": (
        "The embedded AWS did not start",
        "The embedded AWS did not start. The message holds its last lines.",
        "Run `make setup`, then the command again.",
    ),
    "NO-WORLD": (
        "There is nothing to work on",
        "Neither does the environment name a bucket and a database, nor was a demo run in this clone.",
        "Run `lakeferry demo`, or set the variables: "
        "[Run against a catalog of your own](../how-to/run-against-your-own-catalog.md).",
    ),
    "NOT-SET-UP": (
        "This machine is not set up",
        "Something that set-up brings is missing: a jar, or a Java that Spark 3.5 can use.",
        "Run `make setup`.",
    ),
    "SPARK-MASTER": (
        "Not a Spark master",
        "The value of `--master` is not one that Spark knows.",
        "Write it as Spark does: `local[2]`, `local-cluster[2,1,1024]`, `spark://HOST:PORT`, `k8s://URL` or `yarn`.",
    ),
    "OUT-FOLDER": (
        "The copies can't be written",
        "The folder that `--out` names can't be written, which is looked at before anything runs; or the disk was full when the "
        "published files were copied, which stay published.",
        "Free space, or name another folder with `--out`.",
    ),
    "QUERY": (
        "DuckDB refuses the SQL",
        "DuckDB refuses the SQL. The message is DuckDB's, and the hint lists the tables.",
        "Correct the SQL. Names with a hyphen or `$` need double quotes.",
    ),
    "QUERY-CREDENTIALS": (
        "No AWS credentials for a query",
        "No AWS credentials were found in the environment or the profile.",
        "Log in, or unset the `LAKEFERRY_…` variables to query the last demo.",
    ),
    "QUERY-READ-ONLY": (
        "The text is not one SELECT",
        "The text is not exactly one SELECT.",
        "Tables are read only here.",
    ),
    "QUERY-TABLEFLOW-KEY": (
        "The Tableflow key can't be had",
        "`--catalog tableflow` logs in with an API key for Tableflow, and the secret that should hold it is not named, can't be "
        "read, or holds something else.",
        "Set `LAKEFERRY_TABLEFLOW_SECRET` to the secret of a deployment's Tableflow key, and check that your role may read it.",
    ),
    "STOPPED": (
        "The command was stopped",
        "Ctrl-C.",
        "Run the command again. What was done so far stays done: `lakeferry inventory` and `lakeferry status` show it.",
    ),
}
