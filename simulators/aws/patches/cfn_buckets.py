"""Buckets that CloudFormation makes, changes and deletes.

- Encryption, lifecycle rules, ownership controls and tags of the template are put into the bucket, changed with it, and taken
  away when it no longer has them; versioning that it no longer has is suspended. Stock MiniStack drops all of these.
- A bucket with anything in it, be it an old version or a delete marker, is not deleted, and the stack's deletion fails. Stock
  deletes it with all that is in it.

Stricter than AWS: a lifecycle rule with something that is not known here is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from xml.etree import ElementTree

from simulators.aws.hooks import Patch, ministack

PATCH = Patch("cfn_buckets")
_BUCKET: Final = "AWS::S3::Bucket"
_NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
Made = tuple[str, dict[str, Any]]


@PATCH.provisions(_BUCKET, "create", original=True)
def create(original: Callable[..., Made], logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    made = original(logical_id, props, stack_name)
    try:
        _apply(made[0], props, {})
    except ValueError:
        delete(original, made[0], props)
        raise
    return made


@PATCH.provisions(_BUCKET, "update", original=True)
def update(
    original: Callable[..., Made], physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str, **given: Any
) -> Made:
    made = original(physical_id, old, new, stack_name, **given)
    _apply(made[0], new, old if made[0] == physical_id else {})
    return made


@PATCH.provisions(_BUCKET, "delete", original=True)
def delete(_: Callable[..., Any], physical_id: str, props: dict[str, Any]) -> None:
    """As DeleteBucket does it. One that is gone already is no failure."""
    s3 = ministack("services.s3")
    if physical_id in s3._buckets:
        _asked(physical_id, s3._delete_bucket(physical_id))


def _apply(name: str, props: dict[str, Any], old: dict[str, Any]) -> None:
    """Raises ValueError."""
    s3 = ministack("services.s3")
    for prop, (document, api) in _SETTINGS.items():
        if props.get(prop):
            tag, content = document(props[prop])
            _asked(name, getattr(s3, f"_put_bucket_{api}")(name, _xml(tag, content)))
        elif old.get(prop):
            _asked(name, getattr(s3, f"_delete_bucket_{api}")(name))
    if old.get("VersioningConfiguration") and not props.get("VersioningConfiguration"):
        s3._bucket_versioning[name] = "Suspended"


def _asked(name: str, answer: tuple[int, Any, Any]) -> None:
    """Raises ValueError, which CloudFormation tells as the resource's reason."""
    if answer[0] >= 400:
        root = ElementTree.fromstring(answer[2])  # noqa: S314  (our own server wrote it)
        told = {element.tag.rpartition("}")[2]: element.text for element in root.iter()}
        raise ValueError(f"{told.get('Message')} (Service: S3, Status Code: {answer[0]}, {told.get('Code')}): {name}")


def _encryption(given: dict[str, Any]) -> tuple[str, Any]:
    names = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}
    rules = [
        {names.get(name, name): value for name, value in rule.items()} for rule in given["ServerSideEncryptionConfiguration"]
    ]
    return "ServerSideEncryptionConfiguration", {"Rule": rules}


def _ownership(given: dict[str, Any]) -> tuple[str, Any]:
    return "OwnershipControls", {"Rule": given["Rules"]}


def _tags(given: list[dict[str, Any]]) -> tuple[str, Any]:
    return "Tagging", {"TagSet": {"Tag": given}}


def _lifecycle(given: dict[str, Any]) -> tuple[str, Any]:
    return "LifecycleConfiguration", {"Rule": [_rule(rule) for rule in given["Rules"]]}


def _rule(given: dict[str, Any]) -> dict[str, Any]:
    """In S3's own words. Raises ValueError for what is not known."""
    if unknown := given.keys() - _RULE.keys() - {"Prefix"}:
        raise ValueError(f"not simulated: {', '.join(sorted(unknown))} of a lifecycle rule")
    rule: dict[str, Any] = {"Filter": {"Prefix": given.get("Prefix", "")}}
    for name in given.keys() - {"Prefix"}:
        place, inner = _RULE[name]
        if inner:
            rule.setdefault(place, {})[inner] = given[name]
        else:
            rule[place] = given[name]
    return rule


_RULE: Final[Mapping[str, tuple[str, str]]] = {
    "Id": ("ID", ""),
    "Status": ("Status", ""),
    "ExpirationInDays": ("Expiration", "Days"),
    "ExpirationDate": ("Expiration", "Date"),
    "ExpiredObjectDeleteMarker": ("Expiration", "ExpiredObjectDeleteMarker"),
    "NoncurrentVersionExpiration": ("NoncurrentVersionExpiration", ""),
    "AbortIncompleteMultipartUpload": ("AbortIncompleteMultipartUpload", ""),
}
#: How a property is said to S3, and the name that S3's calls have for it.
_SETTINGS: Final[Mapping[str, tuple[Callable[[Any], tuple[str, Any]], str]]] = {
    "BucketEncryption": (_encryption, "encryption"),
    "LifecycleConfiguration": (_lifecycle, "lifecycle"),
    "OwnershipControls": (_ownership, "ownership_controls"),
    "Tags": (_tags, "tagging"),
}


def _xml(tag: str, content: Any) -> bytes:
    root = ElementTree.Element(tag, xmlns=_NAMESPACE)
    _fill(root, content)
    return ElementTree.tostring(root)


def _fill(element: ElementTree.Element, content: Any) -> None:
    """A list stands for as many elements of the same name."""
    if not isinstance(content, dict):
        element.text = str(content).lower() if isinstance(content, bool) else str(content)
        return
    for tag, value in content.items():
        for each in value if isinstance(value, list) else [value]:
            _fill(ElementTree.SubElement(element, tag), each)
