"""CloudFormation: properties and deletion of buckets.

- cfn_buckets: Encryption, lifecycle rules, ownership controls and tags of a bucket are applied, changed and
  removed; versioning is suspended when the template no longer has it. A bucket with any object, version or
  delete marker is not deleted, and the deletion of the stack fails. Stock drops the properties, and deletes
  the bucket with its content. Source: template reference, AWS::S3::Bucket; S3 API reference, DeleteBucket.

Stricter than AWS: a lifecycle rule with a property that this module doesn't know is refused.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and cloudformation_buckets"`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from xml.etree import ElementTree

from simulators.aws.answers import Provisioned
from simulators.aws.hooks import Patch, import_ministack

BUCKETS = Patch("cfn_buckets")
PATCHES: Final = (BUCKETS,)
_BUCKET: Final = "AWS::S3::Bucket"
_NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"


@BUCKETS.provisions(_BUCKET, "create", original=True)
def create_bucket(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    resource = original(logical_id, props, stack_name)
    try:
        _apply_settings(resource[0], props, {})
    except ValueError:
        delete_bucket(original, resource[0], props)
        raise
    return resource


@BUCKETS.provisions(_BUCKET, "update", original=True)
def update_bucket(
    original: Callable[..., Provisioned],
    physical_id: str,
    old: dict[str, Any],
    new: dict[str, Any],
    stack_name: str,
    **options: Any,
) -> Provisioned:
    resource = original(physical_id, old, new, stack_name, **options)
    props_before = old if resource[0] == physical_id else {}
    _apply_settings(resource[0], new, props_before)
    return resource


@BUCKETS.provisions(_BUCKET, "delete", original=True)
def delete_bucket(_: Callable[..., Any], physical_id: str, props: dict[str, Any]) -> None:
    """Delete the bucket with DeleteBucket. The bucket may be deleted already."""
    s3 = import_ministack("services.s3")
    if physical_id in s3._buckets:
        _require_success(physical_id, s3._delete_bucket(physical_id))


def _apply_settings(name: str, props: dict[str, Any], old: dict[str, Any]) -> None:
    """Apply the bucket's properties, and remove those that only `old` has.

    Raises ValueError if S3 refuses.
    """
    s3 = import_ministack("services.s3")
    for prop, (document, api) in _SETTINGS.items():
        if props.get(prop):
            tag, content = document(props[prop])
            _require_success(name, getattr(s3, f"_put_bucket_{api}")(name, _build_xml(tag, content)))
        elif old.get(prop):
            _require_success(name, getattr(s3, f"_delete_bucket_{api}")(name))
    if old.get("VersioningConfiguration") and not props.get("VersioningConfiguration"):
        s3._bucket_versioning[name] = "Suspended"


def _require_success(name: str, answer: tuple[int, Any, Any]) -> None:
    """Raise ValueError if S3 refused the request. The message becomes the ResourceStatusReason."""
    if answer[0] >= 400:
        root = ElementTree.fromstring(answer[2])  # noqa: S314  (our own server wrote it)
        fields = {element.tag.rpartition("}")[2]: element.text for element in root.iter()}
        raise ValueError(
            f"{fields.get('Message')} (Service: S3, Status Code: {answer[0]}, {fields.get('Code')}): {name}"
        )


def _convert_encryption(encryption: dict[str, Any]) -> tuple[str, Any]:
    names = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}
    rules = []
    for rule in encryption["ServerSideEncryptionConfiguration"]:
        rules.append({names.get(name, name): value for name, value in rule.items()})
    return "ServerSideEncryptionConfiguration", {"Rule": rules}


def _convert_lifecycle(configuration: dict[str, Any]) -> tuple[str, Any]:
    rules = [_convert_lifecycle_rule(rule) for rule in configuration["Rules"]]
    return "LifecycleConfiguration", {"Rule": rules}


def _convert_lifecycle_rule(template_rule: dict[str, Any]) -> dict[str, Any]:
    """Return the rule in the format of the S3 API. Raises ValueError for an unknown property."""
    if unknown := template_rule.keys() - _LIFECYCLE_FIELDS.keys() - {"Prefix"}:
        raise ValueError(f"not simulated: {', '.join(sorted(unknown))} of a lifecycle rule")
    rule: dict[str, Any] = {"Filter": {"Prefix": template_rule.get("Prefix", "")}}
    for name in template_rule.keys() - {"Prefix"}:
        key, inner = _LIFECYCLE_FIELDS[name]
        if inner:
            rule.setdefault(key, {})[inner] = template_rule[name]
        else:
            rule[key] = template_rule[name]
    return rule


_LIFECYCLE_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "Id": ("ID", ""),
    "Status": ("Status", ""),
    "ExpirationInDays": ("Expiration", "Days"),
    "ExpirationDate": ("Expiration", "Date"),
    "ExpiredObjectDeleteMarker": ("Expiration", "ExpiredObjectDeleteMarker"),
    "NoncurrentVersionExpiration": ("NoncurrentVersionExpiration", ""),
    "AbortIncompleteMultipartUpload": ("AbortIncompleteMultipartUpload", ""),
}
#: By property: the function that makes S3's request of it, and the name in MiniStack's S3 operations.
_SETTINGS: Final[Mapping[str, tuple[Callable[[Any], tuple[str, Any]], str]]] = {
    "BucketEncryption": (_convert_encryption, "encryption"),
    "LifecycleConfiguration": (_convert_lifecycle, "lifecycle"),
    "OwnershipControls": (
        lambda value: ("OwnershipControls", {"Rule": value["Rules"]}),
        "ownership_controls",
    ),
    "Tags": (lambda value: ("Tagging", {"TagSet": {"Tag": value}}), "tagging"),
}


def _build_xml(tag: str, content: Any) -> bytes:
    root = ElementTree.Element(tag, xmlns=_NAMESPACE)
    _fill_element(root, content)
    return ElementTree.tostring(root)


def _fill_element(element: ElementTree.Element, content: Any) -> None:
    """Add XML elements for a value. A list becomes several elements of the same name."""
    if not isinstance(content, dict):
        element.text = str(content).lower() if isinstance(content, bool) else str(content)
        return
    for tag, value in content.items():
        for item in value if isinstance(value, list) else [value]:
            _fill_element(ElementTree.SubElement(element, tag), item)
