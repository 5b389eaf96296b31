"""Who publishes to an encrypted topic needs its key: kms:GenerateDataKey and kms:Decrypt, by key policy and role.

Missing ones are KMSAccessDenied; a key that is disabled or about to be deleted, or isn't there, is KMSDisabled,
KMSInvalidState or KMSNotFound. Stock MiniStack never looks at the key. The key that SNS brings (alias/aws/sns) lets in
everybody in the account.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

from simulators.aws.hooks import Amendment, Answer, ministack

AMENDMENT = Amendment("sns_keys")
_NEEDED: Final = ("kms:GenerateDataKey", "kms:Decrypt")
_OWN: Final = "alias/aws/sns"


@AMENDMENT.replaces("ministack.services.sns", "handle_request", "method path headers body query_params")
async def handle_request(  # noqa: PLR0917  (MiniStack's own parameters)
    stock: Callable[..., Awaitable[Answer]],
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    query_params: dict[str, Any],
) -> Answer:
    sns = ministack("services.sns")
    asked = {**query_params, **parse_qs(body.decode("utf-8", errors="replace"))}
    if sns._p(asked, "Action") in ("Publish", "PublishBatch"):
        arn = sns._normalize_arn(sns._p(asked, "TopicArn") or sns._p(asked, "TargetArn"))
        topic = sns._topic_by_arn_any_scope(arn)
        if topic and (refused := _refused(topic, headers, query_params)):
            return sns._error(*refused, 400)  # type: ignore[no-any-return]
    return await stock(method, path, headers, body, query_params)


def _refused(topic: dict[str, Any], headers: dict[str, str], query_params: dict[str, Any]) -> tuple[str, str] | None:
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
    return _not_allowed(key["Arn"], headers, query_params)


def _not_allowed(key_arn: str, headers: dict[str, str], query_params: dict[str, Any]) -> tuple[str, str] | None:
    if not ministack("app").AUTH:
        return None
    router, evaluator = ministack("core.router"), ministack("core.iam_evaluator")
    access_key, region = router.extract_access_key_id(headers, query_params), router.extract_region(headers)
    for action in _NEEDED:
        denied = evaluator.enforce(access_key, action, "kms", region, key_arn, None)
        if denied:
            who = getattr(denied, "principal_arn", "")
            return "KMSAccessDenied", f"User: {who} is not authorized to perform: {action} on resource: {key_arn}"
    return None
