"""Who publishes to an encrypted topic needs its key: kms:GenerateDataKey and kms:Decrypt, by key policy and role.

Missing ones are KMSAccessDenied; a key that is disabled or about to be deleted, or isn't there, is KMSDisabled,
KMSInvalidState or KMSNotFound. Stock MiniStack never looks at the key. The key that SNS brings (alias/aws/sns) lets in
everybody in the account.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs

from simulators.aws.hooks import Answer, OriginalRequest, Patch, Request, ministack

PATCH = Patch("sns_keys")
_NEEDED: Final = ("kms:GenerateDataKey", "kms:Decrypt")
_OWN: Final = "alias/aws/sns"


@PATCH.handles("ministack.services.sns")
async def handle_request(original: OriginalRequest, request: Request) -> Answer:
    sns = ministack("services.sns")
    asked = {**request.query, **parse_qs(request.body.decode("utf-8", errors="replace"))}
    if sns._p(asked, "Action") in ("Publish", "PublishBatch"):
        arn = sns._normalize_arn(sns._p(asked, "TopicArn") or sns._p(asked, "TargetArn"))
        topic = sns._topic_by_arn_any_scope(arn)
        if topic and (refused := _refused(topic, request)):
            return sns._error(*refused, 400)  # type: ignore[no-any-return]
    return await original()


def _refused(topic: dict[str, Any], request: Request) -> tuple[str, str] | None:
    """The code and the message."""
    named = topic["attributes"].get("KmsMasterKeyId") or _OWN
    if named.endswith(_OWN):
        return None
    key = ministack("services.kms")._resolve_key(named)
    if key is None:
        return "KMSNotFound", f"Key {named} is not found."
    if key["KeyState"] != "Enabled":
        code = "KMSDisabled" if key["KeyState"] == "Disabled" else "KMSInvalidState"
        return code, f"{key['Arn']} is {key['KeyState']}."
    return _not_allowed(key["Arn"], *request.caller())


def _not_allowed(key_arn: str, access_key: str, region: str) -> tuple[str, str] | None:
    if not ministack("app").AUTH:
        return None
    evaluator = ministack("core.iam_evaluator")
    for action in _NEEDED:
        denied = evaluator.enforce(access_key, action, "kms", region, key_arn, None)
        if denied:
            who = getattr(denied, "principal_arn", "")
            return "KMSAccessDenied", f"User: {who} is not authorized to perform: {action} on resource: {key_arn}"
    return None
