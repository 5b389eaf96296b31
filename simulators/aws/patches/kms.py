"""KMS keys of other services: S3, Secrets Manager and CloudWatch Logs.

- s3_kms: A write of an object that is encrypted with a KMS key (headers or the bucket's default) needs
  kms:GenerateDataKey, reading it kms:Decrypt, and the parts of an upload and its completion kms:Decrypt,
  through S3 and with the object's ARN as encryption context; HeadObject needs none. Without it S3 answers
  403 AccessDenied with KMS's message. A key that is disabled, pending deletion or missing is
  KMS.DisabledException, KMS.KMSInvalidStateException or KMS.NotFoundException (400). Stock never looks at the
  key. Source: S3 user guide, "Using server-side encryption with AWS KMS keys" and "Uploading and copying
  objects using multipart upload"; codes and status from tests of LocalStack that were compared with AWS.
- secrets_kms: GetSecretValue of a secret with a customer's key needs kms:Decrypt, and PutSecretValue,
  CreateSecret and UpdateSecret need kms:GenerateDataKey and kms:Decrypt, through Secrets Manager and with
  SecretARN as encryption context: else AccessDeniedException, "Access to KMS is not allowed". CreateSecret
  and UpdateSecret check the key even without a value. A key in another state is DecryptionFailure or
  EncryptionFailure. Secrets of a stack need it of the role of CloudFormation. Stock never looks at the key.
  Source: Secrets Manager user guide, "Secret encryption and decryption"; API reference, GetSecretValue.
- logs_kms: A log group gets a key only if the key's policy lets logs.<region>.amazonaws.com use it, with the
  log group's ARN as encryption context: else AccessDeniedException, "The specified KMS key does not exist or
  is not allowed to be used with Arn '…'". Stock accepts any text. Source: CloudWatch Logs user guide,
  "Encrypt log data in CloudWatch Logs using AWS Key Management Service"; the words are those of public bug
  reports of Terraform and CDK.

Unlike AWS, the encryption context of S3 is the object's ARN also in buckets with a bucket key, whose context
is the bucket's; and a disabled key refuses at once, whereas S3 may use a key for minutes after it was
disabled.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and kms"`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from simulators.aws import keys, settings
from simulators.aws.answers import Provisioned, ProvisioningFailed, build_json_error
from simulators.aws.hooks import (
    Answer,
    Original,
    OriginalRequest,
    Patch,
    Request,
    get_region,
    import_ministack,
)

S3 = Patch("s3_kms")
_S3: Final = "ministack.services.s3"
_KEY_HEADER: Final = "x-amz-server-side-encryption-aws-kms-key-id"


class S3Request(NamedTuple):
    method: str
    object_arn: str


_request: Final[ContextVar[S3Request | None]] = ContextVar("lakeferry_s3_request", default=None)


@S3.handles(_S3, "signed_path enforce_bucket_region internal access_point_region access_point")
async def handle_s3(original: OriginalRequest, request: Request) -> Answer:
    keys.set_caller(request)
    bucket_name, key = import_ministack("services.s3")._parse_bucket_key(request.path, request.headers)
    _request.set(S3Request(request.method, f"arn:aws:s3:::{bucket_name}/{key}"))
    return await original()


@S3.replaces(_S3, "_resolve_sse_write_headers", "headers bucket_name")
def check_write(original: Callable[..., Any], headers: Mapping[str, str], bucket_name: str) -> Any:
    sse_headers, error = original(headers, bucket_name)
    if error is None:
        error = _find_s3_refusal(sse_headers, "kms:GenerateDataKey")
    return (None, error) if error else (sse_headers, None)


@S3.replaces(_S3, "_check_sse_read_headers", "headers obj")
def check_read(original: Callable[..., Any], headers: Mapping[str, str], obj: dict[str, Any]) -> Any:
    error = original(headers, obj)
    request = _request.get()
    if error or request is None or request.method != "GET":
        return error
    return _find_s3_refusal(obj.get("preserved_headers") or {}, "kms:Decrypt")


@S3.replaces(_S3, "_check_sse_c_copy_source", "headers src_obj")
def check_copy(original: Callable[..., Any], headers: Mapping[str, str], src_obj: dict[str, Any]) -> Any:
    return original(headers, src_obj) or _find_s3_refusal(
        src_obj.get("preserved_headers") or {}, "kms:Decrypt"
    )


@S3.replaces(_S3, "_check_sse_c_part", "headers upload")
def check_part(original: Callable[..., Any], headers: Mapping[str, str], upload: dict[str, Any]) -> Any:
    return original(headers, upload) or _find_s3_refusal(upload.get("preserved_headers") or {}, *keys.WRITES)


def _find_s3_refusal(sse_headers: Mapping[str, str], *actions: str) -> Answer | None:
    request = _request.get()
    if request is None or not sse_headers.get(_KEY_HEADER):
        return None
    context = {"aws:s3:arn": request.object_arn}
    refusal = keys.find_refusal(sse_headers[_KEY_HEADER], actions, "s3", context)
    if refusal is None:
        return None
    status = 403 if refusal.kind == "AccessDenied" else 400
    code = _S3_CODES.get(refusal.kind, refusal.kind)
    answer: Answer = import_ministack("services.s3")._error(code, refusal.message, status)
    return answer


_S3_CODES: Final = {
    "NotFound": "KMS.NotFoundException",
    "Disabled": "KMS.DisabledException",
    "InvalidState": "KMS.KMSInvalidStateException",
}

SECRETS = Patch("secrets_kms")
_SECRETS: Final = "ministack.services.secretsmanager"
_VALIDATION: Final = "RequestToValidateKeyAccess"
_FAILURES: Final = {
    "DecryptionFailure": "Secrets Manager can't decrypt the protected secret text using the provided KMS "
    "key.",
    "EncryptionFailure": "Secrets Manager can't encrypt the protected secret text using the provided KMS "
    "key. Check that the KMS key is available, enabled, and not in an invalid state.",
}


@SECRETS.handles(_SECRETS)
async def handle_secrets(original: OriginalRequest, request: Request) -> Answer:
    keys.set_caller(request)
    return await original()


@SECRETS.replaces(_SECRETS, "_get_secret_value", "data")
def get_secret_value(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if answer[0] != 200:
        return answer
    _, secret = import_ministack("services.secretsmanager")._resolve(data.get("SecretId"))
    return _find_secret_refusal(secret, "kms:Decrypt") or answer


@SECRETS.replaces(_SECRETS, "_put_secret_value", "data")
def put_secret_value(original: Original, data: dict[str, Any]) -> Answer:
    _, secret = import_ministack("services.secretsmanager")._resolve(data.get("SecretId"))
    return (_find_secret_refusal(secret, *keys.WRITES) if secret else None) or original(data)


@SECRETS.replaces(_SECRETS, "_create_secret", "data")
def create_secret(original: Original, data: dict[str, Any]) -> Answer:
    return _find_unusable_key(data.get("KmsKeyId"), data.get("Name", "")) or original(data)


@SECRETS.replaces(_SECRETS, "_update_secret", "data")
def update_secret(original: Original, data: dict[str, Any]) -> Answer:
    _, secret = import_ministack("services.secretsmanager")._resolve(data.get("SecretId"))
    if secret is None:
        return original(data)
    refusal = _find_unusable_key(data.get("KmsKeyId"), secret["Name"])
    if not refusal and {"SecretString", "SecretBinary"} & data.keys():
        refusal = _find_secret_refusal({**secret, **data}, *keys.WRITES)
    return refusal or original(data)


@SECRETS.provisions("AWS::SecretsManager::Secret", "create", original=True)
def provision_secret(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    refusal = _find_unusable_key(props.get("KmsKeyId"), props.get("Name", logical_id))
    if refusal:
        answer = json.loads(refusal[2])
        raise ProvisioningFailed(f"{answer['message']} (Service: SecretsManager, {answer['__type']})")
    return original(logical_id, props, stack_name)


def _find_unusable_key(key_name: str | None, secret_name: str) -> Answer | None:
    """Return the refusal of a key that a secret is to have. Its suffix is not known yet."""
    prefix = f"arn:aws:secretsmanager:{get_region()}:{settings.ACCOUNT}:secret:"
    named = {"KmsKeyId": key_name, "ARN": f"{prefix}{secret_name}-AbCdEf"}
    return _find_secret_refusal(named, *keys.WRITES, version=_VALIDATION)


def _find_secret_refusal(secret: Mapping[str, Any], *actions: str, version: str = "") -> Answer | None:
    key_name = secret.get("KmsKeyId") or ""
    context = {"SecretARN": secret["ARN"], **({"SecretVersionId": version} if version else {})}
    refusal = keys.find_refusal(key_name, actions, "secretsmanager", context)
    if refusal is None:
        return None
    if refusal.kind in ("AccessDenied", "NotFound"):
        return build_json_error("AccessDeniedException", "Access to KMS is not allowed")
    code = "DecryptionFailure" if actions == ("kms:Decrypt",) else "EncryptionFailure"
    return build_json_error(code, _FAILURES[code])


LOGS = Patch("logs_kms")
_LOGS: Final = "ministack.services.cloudwatch_logs"
_LOG_GROUP: Final = "AWS::Logs::LogGroup"
_USES: Final = ("kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey")


@LOGS.replaces(_LOGS, "_create_log_group", "data")
def create_log_group(original: Original, data: dict[str, Any]) -> Answer:
    problem = _find_problem_of_group(data.get("logGroupName", ""), data.get("kmsKeyId"))
    return build_json_error("AccessDeniedException", problem) if problem else original(data)


@LOGS.provisions(_LOG_GROUP, "create", original=True)
def provision_log_group(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    name = props.get("LogGroupName") or f"/aws/cloudformation/{stack_name}/{logical_id}"
    if problem := _find_problem_of_group(name, props.get("KmsKeyId")):
        raise ProvisioningFailed(f"{problem} (Service: CloudWatchLogs, Status Code: 400)")
    return original(logical_id, props, stack_name)


@LOGS.provisions(_LOG_GROUP, "update", original=True)
def update_log_group(
    original: Callable[..., Provisioned],
    physical_id: str,
    old: dict[str, Any],
    new: dict[str, Any],
    *rest: Any,
) -> Provisioned:
    if problem := _find_problem_of_group(physical_id, new.get("KmsKeyId")):
        raise ProvisioningFailed(f"{problem} (Service: CloudWatchLogs, Status Code: 400)")
    return original(physical_id, old, new, *rest)


def _find_problem_of_group(name: str, key_name: str | None) -> str:
    """Return why the log group can't have the key, "" if it can."""
    arn = f"arn:aws:logs:{get_region()}:{settings.ACCOUNT}:log-group:{name}"
    service = f"logs.{get_region()}.amazonaws.com"
    if not key_name:
        return ""
    context = {"aws:logs:arn": arn}
    if keys.is_open_to_service(key_name, service, _USES, source_arn=arn, context=context):
        return ""
    return f"The specified KMS key does not exist or is not allowed to be used with Arn '{arn}'"


PATCHES: Final = (
    S3,
    SECRETS,
    LOGS,
)
