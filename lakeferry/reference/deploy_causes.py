"""What lies behind the error codes of `plan`, `deploy`, `status`, `rotate` and `logs`."""

from __future__ import annotations

from typing import Final

#: (what it is, the likely cause, what to do), in Markdown, with links as seen from docs/reference.
DEPLOY: Final[dict[str, tuple[str, str, str]]] = {
    "DEPLOY-FAILED": (
        "The deployment failed",
        "The message names the first resource that failed, with the reason and its own code; what fell because of it is not. "
        "CloudFormation takes back what that deployment had done in the stack, and the lines before the message say how each "
        "stack stands. `.lakeferry/deploy.log` holds all that CDK's command line wrote.",
        "Correct what the message names, `lakeferry explain` with the code in it, then `lakeferry deploy` again: it carries on "
        "from there, and takes over what exists.",
    ),
    "DEPLOY-NOT-CONFIRMED": (
        "Nobody has agreed to the deployment",
        "`lakeferry deploy` shows its plan and asks, and there was nobody to ask: no terminal, or `--json`.",
        "Look at `lakeferry plan`, then `lakeferry deploy --yes`. Nothing was changed.",
    ),
    "DEPLOY-NOT-READY": (
        "Something that every deployment needs is missing",
        "AWS credentials, CDK's bootstrap of the region, a secret with a key, Node or the CDK command line. The message lists "
        "all that is missing.",
        "Mend them, each as the hint says; `lakeferry doctor` looks at more. Nothing was changed.",
    ),
    "DEPLOY-STOPPED": (
        "Nobody watches the deployment any more",
        "Ctrl-C. CloudFormation goes on with the stacks that the message names; those after them were not begun.",
        "`lakeferry status` looks how it stands, and `lakeferry deploy` does the rest once CloudFormation is done.",
    ),
    "KEY-OVERDUE": (
        "A key is too old, or its rotation is late",
        "Rotation has failed for days, or is switched off. The current key still works.",
        "`lakeferry logs rotation` says why; then `lakeferry rotate SECRET --now`: [Rotate keys](../how-to/rotate.md).",
    ),
    "LOGS-UNKNOWN": (
        "Nothing of the deployment is called so",
        "`lakeferry logs` was asked for something that is no export of this stage, and none of the functions that it knows.",
        "`lakeferry logs` lists the names.",
    ),
    "NOT-DEPLOYED": (
        "The deployment, or a part of it, isn't there",
        "Nothing was deployed for this stage in this account and region, or its first deployment failed.",
        "Check `--stage` and the account, then `lakeferry deploy`.",
    ),
    "PLAN-CHANGES": (
        "Deploying would change something",
        "`lakeferry plan --check` ends so whenever the templates of now differ from what is deployed.",
        "Look at the plan. If it is what you want: `lakeferry deploy`.",
    ),
    "ROTATE-FAILED": (
        "A key was not replaced, or not revoked",
        "The function that rotates refused; the message holds its reason with a code of its own. The current key stays as it is.",
        "`lakeferry explain` with that code, and `lakeferry logs rotation`: [Rotate keys](../how-to/rotate.md).",
    ),
    "ROTATE-LATER": (
        "A rotation takes longer than we wait",
        "A new Kafka key takes Confluent some minutes, and Secrets Manager tries again what failed. It goes on by itself.",
        "`lakeferry rotate --check` later, and `lakeferry logs rotation`.",
    ),
    "ROTATE-NOT-CONFIRMED": (
        "Nobody has agreed to replace or revoke a key",
        "`lakeferry rotate` asks before it does either, and there was nobody to ask.",
        "Say it: `lakeferry rotate SECRET --now --yes`. Nothing was changed.",
    ),
    "ROTATE-STOPPED": (
        "Nobody watches the rotation any more",
        "Ctrl-C. A rotation that has begun goes on in AWS. After `--revoke`, an older key may still be valid.",
        "`lakeferry rotate` shows the keys. After `--revoke`, run it again: only then is every older key gone.",
    ),
    "ROTATE-UNKNOWN": (
        "No secret that rotates is called so",
        "The name is misspelt, or is that of a key that you made yourself: those don't rotate. `--revoke` wants one secret.",
        "`lakeferry rotate` lists them.",
    ),
    "STATUS-LATER": (
        "What was waited for has not come in time",
        "A first table takes up to half an hour after the deployment, and needs a record in its topic. An export publishes only "
        "closed windows, at its next run.",
        "`lakeferry status` shows how far it is. Wait on with the same command, or longer with `--minutes`.",
    ),
    "STATUS-WRONG": (
        "Something of the deployment is not well",
        "The message names what: a table without anything new, one that Tableflow has suspended, a run that failed, a key "
        "that is too old, a stack that failed.",
        "Each line of the status has its reason, many with a code for `lakeferry explain`; `lakeferry logs` has the rest: "
        "[Troubleshooting](../troubleshooting.md).",
    ),
    "SYNTH-FAILED": (
        "The templates could not be made",
        "A rule of the stacks was broken, or an asset could not be built. The message holds CDK's last lines.",
        "Correct what they name, and run the command again. Nothing was changed.",
    ),
}
