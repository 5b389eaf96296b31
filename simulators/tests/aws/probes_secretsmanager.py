"""Probes: how AWS differs from stock MiniStack in Secrets Manager."""

from simulators.tests.aws.probe_kit import probe
from tests.support.aws_clients import error_of
from tests.support.rotation_kit import echo, echoing_secret, recorded_steps


@probe("secrets_versions")
def keeps_a_version_that_has_a_token(aws):
    name = aws.new_database()
    token = "t" * 32
    aws.secrets.create_secret(Name=name, SecretString="1")
    aws.secrets.put_secret_value(SecretId=name, SecretString="2", ClientRequestToken=token)
    again = error_of(aws.secrets.put_secret_value, SecretId=name, SecretString="3", ClientRequestToken=token)
    same = error_of(aws.secrets.put_secret_value, SecretId=name, SecretString="2", ClientRequestToken=token)
    now = aws.secrets.get_secret_value(SecretId=name)
    return (again, same, now["SecretString"], now["VersionId"]) == (
        "ResourceExistsException",
        None,
        "2",
        token,
    )


@probe("secrets_versions")
def names_the_first_version_by_its_token(aws):
    created = aws.secrets.create_secret(
        Name=aws.new_database(), SecretString="1", ClientRequestToken="u" * 32
    )
    return created["VersionId"] == "u" * 32


@probe("secrets_versions")
def has_no_value_where_none_was_given(aws):
    name = aws.new_database()
    aws.secrets.create_secret(Name=name)
    return error_of(aws.secrets.get_secret_value, SecretId=name) == "ResourceNotFoundException"


@probe("secrets_rotation")
def calls_the_function_in_four_steps(aws):
    name = echoing_secret(aws)
    token = "v" * 32
    aws.secrets.rotate_secret(SecretId=name, ClientRequestToken=token, RotationLambdaARN=echo(aws))
    return recorded_steps(aws, name) == ["createSecret", "setSecret", "testSecret", "finishSecret"]


@probe("secrets_rotation")
def tests_without_rotating(aws):
    """Only one step; its version is gone afterwards."""
    name = echoing_secret(aws)
    aws.secrets.rotate_secret(SecretId=name, RotationLambdaARN=echo(aws), RotateImmediately=False)
    result = recorded_steps(aws, name)
    return (
        result == ["testSecret"]
        and len(aws.secrets.describe_secret(SecretId=name)["VersionIdsToStages"]) == 1
    )


@probe("secrets_rotation")
def refuses_a_second_rotation(aws):
    name = echoing_secret(aws)
    aws.secrets.put_secret_value(
        SecretId=name, SecretString="p", ClientRequestToken="w" * 32, VersionStages=["AWSPENDING"]
    )
    return (
        error_of(aws.secrets.rotate_secret, SecretId=name, RotationLambdaARN=echo(aws))
        == "InvalidRequestException"
    )


@probe("secrets_rotation")
def refuses_a_function_that_it_may_not_call(aws):
    arn = echo(aws, open_to="events.amazonaws.com")
    return (
        error_of(aws.secrets.rotate_secret, SecretId=echoing_secret(aws), RotationLambdaARN=arn)
        == "AccessDeniedException"
    )


@probe("secrets_rotation")
def refuses_to_rotate_without_a_function(aws):
    return error_of(aws.secrets.rotate_secret, SecretId=echoing_secret(aws)) == "InvalidRequestException"


@probe("secrets_rotation")
def keeps_a_label_on_one_version(aws):
    name = echoing_secret(aws)
    for token in ("x" * 32, "y" * 32):
        aws.secrets.put_secret_value(
            SecretId=name, SecretString=token, ClientRequestToken=token, VersionStages=["AWSPENDING"]
        )
    stages = aws.secrets.describe_secret(SecretId=name)["VersionIdsToStages"]
    return [version for version, value in stages.items() if "AWSPENDING" in value] == ["y" * 32]
