"""What tells AWS from stock MiniStack in buckets of a stack: what their template says, and that none is deleted with its data."""

from __future__ import annotations

from assembly_kit import dev_templates
from aws_clients import error_of
from stack_kit import Stack


def of_bucket(aws, **properties):
    return Stack(aws, "AWS::S3::Bucket", **properties)


def of_ours():
    """The properties of the bucket of exports, as our stack has them."""
    resources = dev_templates()["data"]["Resources"]
    return next(
        each["Properties"] for name, each in resources.items() if name.startswith("LakeBucket") and "Tags" in each["Properties"]
    )


def expires_what_the_template_says(aws):
    """All rules of ours are there, in S3's words."""
    wanted = of_ours()["LifecycleConfiguration"]["Rules"]
    bucket = of_bucket(aws, LifecycleConfiguration={"Rules": wanted}).resource
    if error_of(aws.s3.get_bucket_lifecycle_configuration, Bucket=bucket):
        return False
    rules = aws.s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    result = [(rule["ID"], rule["Filter"]["Prefix"], rule.get("Expiration", {}).get("Days"), rule["Status"]) for rule in rules]
    tidy = (rules[0]["AbortIncompleteMultipartUpload"], rules[0]["NoncurrentVersionExpiration"], rules[0]["Expiration"])
    expected = [(rule["Id"], rule.get("Prefix", ""), rule.get("ExpirationInDays"), rule["Status"]) for rule in wanted]
    return result == expected and tidy == (
        {"DaysAfterInitiation": 7},
        {"NoncurrentDays": 7},
        {"ExpiredObjectDeleteMarker": True},
    )


def encrypts_what_the_template_says(aws):
    bucket = of_bucket(aws, BucketEncryption=of_ours()["BucketEncryption"]).resource
    return aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1").get("ServerSideEncryption") == "AES256"


def tags_what_the_template_says(aws):
    tags = of_ours()["Tags"]
    bucket = of_bucket(aws, Tags=tags).resource
    return not error_of(aws.s3.get_bucket_tagging, Bucket=bucket) and aws.s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags


def owns_objects_as_the_template_says(aws):
    bucket = of_bucket(aws, OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]}).resource
    controls = aws.s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
    return controls == {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}


def takes_away_what_the_template_no_longer_says(aws):
    ours = of_ours()
    stack = of_bucket(aws, **ours)
    before = error_of(aws.s3.get_bucket_tagging, Bucket=stack.resource)
    ours["LifecycleConfiguration"] = {"Rules": ours["LifecycleConfiguration"]["Rules"][:1]}
    status = stack.update(**{name: value for name, value in ours.items() if name not in ("Tags", "VersioningConfiguration")})
    if before or status != "UPDATE_COMPLETE":
        return False
    rules = aws.s3.get_bucket_lifecycle_configuration(Bucket=stack.resource)["Rules"]
    versioning = aws.s3.get_bucket_versioning(Bucket=stack.resource)["Status"]
    return (len(rules), versioning, error_of(aws.s3.get_bucket_tagging, Bucket=stack.resource)) == (
        1,
        "Suspended",
        "NoSuchTagSet",
    )


def keeps_a_bucket_that_holds_an_object(aws):
    stack = of_bucket(aws)
    aws.s3.put_object(Bucket=stack.resource, Key="k", Body=b"1")
    full = stack.delete()
    error_of(aws.s3.delete_object, Bucket=stack.resource, Key="k")
    return (full, stack.delete()) == ("DELETE_FAILED", "DELETE_COMPLETE")


def keeps_a_bucket_that_holds_an_old_version(aws):
    """And one that holds nothing but a delete marker."""
    stack = of_bucket(aws, VersioningConfiguration={"Status": "Enabled"})
    version = aws.s3.put_object(Bucket=stack.resource, Key="k", Body=b"1")["VersionId"]
    marker = aws.s3.delete_object(Bucket=stack.resource, Key="k")["VersionId"]
    result = [stack.delete()]
    for each in (version, marker):
        error_of(aws.s3.delete_object, Bucket=stack.resource, Key="k", VersionId=each)
        result.append(stack.delete())
    return result == ["DELETE_FAILED", "DELETE_FAILED", "DELETE_COMPLETE"]


PROBES = {
    "cfn_buckets": [
        expires_what_the_template_says,
        encrypts_what_the_template_says,
        tags_what_the_template_says,
        owns_objects_as_the_template_says,
        takes_away_what_the_template_no_longer_says,
        keeps_a_bucket_that_holds_an_object,
        keeps_a_bucket_that_holds_an_old_version,
    ]
}
