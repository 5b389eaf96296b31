"""Probes: which networks AWS refuses for functions and jobs, and stock MiniStack accepts."""

from botocore.exceptions import ClientError

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack
from tests.support.aws_clients import error_of
from tests.support.network import INTERFACES_OF_LAMBDA, RIGHTS_OF_GLUE, Network
from tests.support.rotation_kit import new_function
from tests.support.runtime_kit import new_job, numbered, run

HANDLER = {"it.py": "def handler(event, context): return 'well'\n"}


def refusal_of(aws, role, **vpc):
    """Return the message with which Lambda refuses a function in this network, "" if it doesn't."""
    function = new_function(aws, HANDLER, "it.handler")
    try:
        aws.functions.update_function_configuration(FunctionName=function, Role=role, VpcConfig=vpc)
    except ClientError as error:
        return error.response["Error"]["Message"]
    return ""


@probe("lambda_vpc")
def wants_subnets_and_groups_of_one_network(aws):
    role = aws.new_role((INTERFACES_OF_LAMBDA, "*"))
    mine = Network(aws.client("ec2"))
    other = Network(aws.client("ec2"))
    cases = [
        ({"SubnetIds": ["subnet-0a1b"], "SecurityGroupIds": [mine.group]}, "subnet-0a1b' does not exist"),
        ({"SubnetIds": mine.subnets, "SecurityGroupIds": ["sg-0a1b"]}, "sg-0a1b' does not exist"),
        ({"SubnetIds": mine.subnets, "SecurityGroupIds": [other.group]}, "in the same VPC."),
        ({"SubnetIds": [mine.subnets[0], other.subnets[0]], "SecurityGroupIds": [mine.group]}, "same VPC."),
        ({"SubnetIds": mine.subnets, "SecurityGroupIds": []}, "must coexist"),
        ({"SubnetIds": mine.subnets, "SecurityGroupIds": [mine.group]}, ""),
    ]
    messages = [refusal_of(aws, role, **vpc) for vpc, _ in cases]
    return all(
        words in message and bool(words) == bool(message)
        for message, (_, words) in zip(messages, cases, strict=True)
    )


@probe("lambda_vpc")
def wants_a_role_that_may_join_the_network(aws):
    mine = Network(aws.client("ec2"))
    vpc = {"SubnetIds": mine.subnets, "SecurityGroupIds": [mine.group]}
    message = refusal_of(aws, aws.new_role(("ec2:DescribeSubnets", "*")), **vpc)
    return message == (
        "The provided execution role does not have permissions to call CreateNetworkInterface on EC2"
    )


@probe("lambda_vpc")
def keeps_the_network_of_a_function_of_a_stack(aws):
    mine = Network(aws.client("ec2"))
    function = {
        "FunctionName": numbered("in-network"),
        "Runtime": "python3.11",
        "Handler": "index.handler",
        "Code": {"ZipFile": "def handler(event, context): return 'well'"},
        "VpcConfig": {"SubnetIds": mine.subnets, "SecurityGroupIds": [mine.group]},
    }
    refused = Stack(aws, "AWS::Lambda::Function", **function, Role=aws.new_role(("ec2:Describe*", "*")))
    role = aws.new_role((INTERFACES_OF_LAMBDA, "*"))
    accepted = Stack(aws, "AWS::Lambda::Function", **function, Role=role)
    made = aws.functions.get_function_configuration(FunctionName=accepted.resource)
    return (refused.status, made.get("VpcConfig", {}).get("VpcId")) == ("ROLLBACK_COMPLETE", mine.vpc)


def connected_job(aws, connection, rights=RIGHTS_OF_GLUE):
    script = "print('well')\n"
    return new_job(aws, script, *rights, Connections={"Connections": [connection]})


def failure_of(aws, connection, rights=RIGHTS_OF_GLUE):
    """Return the message of a run that fails, "" if it succeeds."""
    record = run(aws, connected_job(aws, connection, rights))
    return "" if record["JobRunState"] == "SUCCEEDED" else record.get("ErrorMessage", "failed")


def new_connection(aws, subnet, group, zone=""):
    name = numbered("connection")
    aws.glue.create_connection(
        ConnectionInput={
            "Name": name,
            "ConnectionType": "NETWORK",
            "ConnectionProperties": {},
            "PhysicalConnectionRequirements": {
                "SubnetId": subnet,
                "SecurityGroupIdList": [group],
                "AvailabilityZone": zone or f"{aws.server.region}a",
            },
        }
    )
    return name


@probe("glue_connections")
def a_job_wants_a_connection_that_works(aws):
    ec2 = aws.client("ec2")
    mine = Network(ec2)
    closed = Network(ec2, lets_members_in=False)
    lonely = Network(ec2, reaches_s3=False)
    subnet = mine.subnets[0]
    messages = [
        failure_of(aws, "no-connection"),
        failure_of(aws, new_connection(aws, "subnet-0a1b", mine.group)),
        failure_of(aws, new_connection(aws, subnet, "sg-0a1b")),
        failure_of(aws, new_connection(aws, subnet, mine.group, f"{aws.server.region}c")),
        failure_of(aws, new_connection(aws, closed.subnets[0], closed.group)),
        failure_of(aws, new_connection(aws, lonely.subnets[0], lonely.group)),
        failure_of(aws, new_connection(aws, subnet, mine.group)),
    ]
    words = (
        "Connection no-connection not found",
        "'subnet-0a1b' does not exist",
        "'sg-0a1b' does not exist",
        "Could not find subnet for AZ",
        "must open all ingress ports",
        "Could not find S3 endpoint or NAT gateway",
    )
    return messages[-1] == "" and all(
        text in message for text, message in zip(words, messages[:-1], strict=True)
    )


@probe("glue_connections")
def a_job_wants_a_role_that_may_join_the_network(aws):
    mine = Network(aws.client("ec2"))
    connection = new_connection(aws, mine.subnets[0], mine.group)
    network, tags, reads = RIGHTS_OF_GLUE
    messages = [
        failure_of(aws, connection, (network, tags)),
        failure_of(aws, connection, (reads, tags)),
        failure_of(aws, connection, (reads, network)),
    ]
    return [
        "glue:GetConnection" in messages[0],
        "ec2:Describe" in messages[1],
        "CreateTags" in messages[2],
    ] == [
        True,
        True,
        True,
    ]


@probe("glue_connections")
def takes_the_next_connection_if_one_can_not_be_used(aws):
    mine = Network(aws.client("ec2"))
    connection = new_connection(aws, mine.subnets[0], mine.group)
    job = new_job(
        aws, "print('well')\n", *RIGHTS_OF_GLUE, Connections={"Connections": ["no-connection", connection]}
    )
    lost = connected_job(aws, "no-connection")
    return (run(aws, job)["JobRunState"], run(aws, lost)["JobRunState"]) == ("SUCCEEDED", "FAILED")


@probe("glue_connections")
def refuses_a_second_connection_of_a_name(aws):
    mine = Network(aws.client("ec2"))
    name = new_connection(aws, mine.subnets[0], mine.group)
    given = {"Name": name, "ConnectionType": "NETWORK", "ConnectionProperties": {}}
    return error_of(aws.glue.create_connection, ConnectionInput=given) == "AlreadyExistsException"
