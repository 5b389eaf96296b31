"""What lies behind the error codes of `lakeferry init` and `lakeferry secrets set`, in the form of command_causes.py."""

from __future__ import annotations

from typing import Final

SETUP: Final[dict[str, tuple[str, str, str]]] = {
    "INIT-ANSWER": (
        "An answer can't be used",
        "An option of `lakeferry init`, or what was typed, has another form than it must. The message lists all of them.",
        "Correct them: [Deployment file](deployment-file.md). Nothing was written.",
    ),
    "INIT-EXISTS": (
        "The deployment file exists, and the answers change it",
        "`lakeferry init` writes nothing over without asking, and nobody could be asked. `details` hold the difference.",
        "Look at the difference; `--yes` writes it.",
    ),
    "NO-CLONE": (
        "This folder is not in a clone of Lakeferry",
        "Deployment files, topics and exports live in a clone of the project, and the command was called from elsewhere.",
        "Clone the project and go there, or go to the clone that the message names.",
    ),
    "SECRETS-CLUSTER-KEY": (
        "The key is not a Cloud key",
        "It opens a Kafka cluster, a Schema Registry, a Flink region or Tableflow. Only a Cloud key may make things.",
        "Make one: `confluent api-key create --resource cloud --service-account sa-…`, then `lakeferry secrets set confluent`. "
        "Nothing was stored.",
    ),
    "SECRETS-DELETED": (
        "The secret is about to be deleted",
        "Somebody deleted it, and Secrets Manager keeps it for some days before it goes. Until then its name is taken.",
        "Take it back with `aws secretsmanager restore-secret`, as the message shows, or put another name into the file.",
    ),
    "SECRETS-INPUT": (
        "No key was given, or not in a form that can be read",
        "Standard input is empty or has other lines than asked for, or nobody can be asked, because this is no terminal or "
        "`--json` was given.",
        "Run `lakeferry secrets set confluent` or `snowflake` on a terminal, or give the value on standard input. Never on the "
        "command line.",
    ),
    "SECRETS-PEM": (
        "The private key can't be read",
        "It is a public key, in another form than PKCS#8, was not copied whole, or has a passphrase that was not given.",
        "Give the whole file with its BEGIN and END lines, or let `lakeferry secrets set snowflake --generate` make a new pair.",
    ),
    "SECRETS-PUBLIC-KEY": (
        "Snowflake doesn't let the user in with this key",
        "The user doesn't have the key's public half. Or there is no such user, or `snowflake.account` or `snowflake.user` is "
        "misspelt.",
        "An admin of Snowflake runs the ALTER USER line of the message, then you `lakeferry secrets set snowflake` again. Where "
        "the user isn't there yet: [Prepare Snowflake](../how-to/prepare-snowflake.md). Nothing was stored.",
    ),
    "SECRETS-REFUSED": (
        "Confluent doesn't accept the key",
        "Id or secret is wrong, the key was deleted or made moments ago, or it is a key for something else than the Cloud API, "
        "to which Confluent answers the same.",
        "Copy both again. A key that was made just now: `lakeferry secrets set confluent --wait 300`. Nothing was stored.",
    ),
    "SECRETS-SCOPE": (
        "The key may do too little",
        "It is a Cloud key, and its owner lacks the role OrganizationAdmin, without which no role can be given to the "
        "deployment's own accounts.",
        "Give the owner that role, and run `lakeferry secrets set confluent` again: [Prepare "
        "Confluent Cloud](../how-to/prepare-confluent.md). Nothing was stored.",
    ),
    "SECRETS-SHAPE": (
        "This can't be an API key",
        "Id and secret are the wrong way round, one was not copied whole, or quotes or blanks came with it.",
        "Copy them again: the id has 16 capitals and digits, the secret is longer.",
    ),
    "SECRETS-WAITING": (
        "A new key pair waits for an admin",
        "`lakeferry secrets set snowflake --generate` made it, and the user in Snowflake doesn't have its public half yet.",
        "An admin of Snowflake runs the ALTER USER line of the message; then run the same command again. The current key stays "
        "as it is until then.",
    ),
}
