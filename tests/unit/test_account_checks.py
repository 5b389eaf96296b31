"""`lakeferry doctor` over a network, KMS keys and buckets that exist: what would stop a deployment is named
before anything is deployed.
"""

from __future__ import annotations

import itertools
import json

import attrs
import boto3
import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health import doctor, keys, network, storage
from lakeferry.health.model import Result
from tests.support.policies import ACCOUNT

FILE = (ROOT / "tests" / "data" / "regulated.toml").read_text(encoding="utf-8")
_numbers = itertools.count(1)


@attrs.frozen
class Vpc:
    """A VPC with a private subnet, a NAT gateway in a public one, and a security group."""

    ec2: object
    id: str
    zone: str
    tables: dict = attrs.Factory(dict)

    @classmethod
    def create(cls, region):
        ec2 = boto3.client("ec2")
        return cls(ec2, ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"], f"{region}a")

    def subnet(self, *, target=None):
        """Return the id of a subnet whose default route has this target."""
        block = f"10.0.{next(_numbers) % 250}.0/24"
        created = self.ec2.create_subnet(VpcId=self.id, CidrBlock=block, AvailabilityZone=self.zone)
        subnet = created["Subnet"]["SubnetId"]
        self.tables[subnet] = self.ec2.create_route_table(VpcId=self.id)["RouteTable"]["RouteTableId"]
        self.ec2.associate_route_table(RouteTableId=self.tables[subnet], SubnetId=subnet)
        if target:
            self.route(subnet, "0.0.0.0/0", **target)
        return subnet

    def route(self, subnet, destination, **target):
        self.ec2.create_route(RouteTableId=self.tables[subnet], DestinationCidrBlock=destination, **target)

    def public_target(self):
        gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=self.id)
        return {"GatewayId": gateway}

    def nat_target(self):
        public = self.subnet()
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        nat = self.ec2.create_nat_gateway(SubnetId=public, AllocationId=address)["NatGateway"]["NatGatewayId"]
        return {"NatGatewayId": nat}

    def security_group(self, *, open_to_itself=True):
        name = f"functions-{next(_numbers)}"
        group = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=self.id)["GroupId"]
        if open_to_itself:
            rule = {
                "IpProtocol": "tcp",
                "FromPort": 0,
                "ToPort": 65535,
                "UserIdGroupPairs": [{"GroupId": group}],
            }
            self.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
        return group

    def endpoint(self, service, region):
        self.ec2.create_vpc_endpoint(
            VpcId=self.id, ServiceName=f"com.amazonaws.{region}.{service}", VpcEndpointType="Interface"
        )


@pytest.fixture
def vpc(lake_aws):
    return Vpc.create(lake_aws.region)


def context(**changed):
    """Return the context of a file whose tables have these values instead."""
    loaded = deployment_file.parse(FILE, name="regulated.toml", judge=NOT_JUDGED)
    tables = {
        name: attrs.evolve(getattr(loaded.deployment, name), **values) for name, values in changed.items()
    }
    return DeploymentContext(attrs.evolve(loaded, deployment=attrs.evolve(loaded.deployment, **tables)))


def look_at_network(subnets, groups, proxy=None):
    ctx = context(network={"subnets": subnets, "security_groups": groups, "proxy": proxy})
    return {check.name: check for check in network.look(ctx)}


def test_a_network_that_works_is_ok(vpc):
    subnet = vpc.subnet(target=vpc.nat_target())
    checks = look_at_network({subnet: vpc.zone}, [vpc.security_group()])
    assert {check.result for check in checks.values()} == {Result.OK}
    assert "through nat-" in checks[f"way out of {subnet}"].message


def test_a_subnet_that_does_not_exist_is_named(vpc):
    checks = look_at_network({"subnet-0123456789abcdef0": vpc.zone}, [vpc.security_group()])
    assert checks["subnets"].result is Result.FAIL
    assert "subnet-0123456789abcdef0" in checks["subnets"].message
    assert checks["security groups"].result is Result.SKIPPED


def test_a_wrong_zone_is_named_with_the_right_one(vpc):
    subnet = vpc.subnet(target=vpc.nat_target())
    checks = look_at_network({subnet: "eu-west-1c"}, [vpc.security_group()])
    assert checks["subnets"].message == f"{subnet} is in {vpc.zone}"


def test_subnets_of_two_vpcs_are_refused(vpc, lake_aws):
    other = Vpc.create(lake_aws.region)
    subnets = {vpc.subnet(): vpc.zone, other.subnet(): other.zone}
    checks = look_at_network(subnets, [vpc.security_group()])
    assert "2 VPCs" in checks["subnets"].message


def test_a_security_group_of_another_vpc_is_refused(vpc, lake_aws):
    foreign = Vpc.create(lake_aws.region).security_group()
    checks = look_at_network({vpc.subnet(): vpc.zone}, [foreign])
    assert checks["security groups"].message == f"{foreign}: of another VPC"


def test_glue_needs_a_security_group_that_lets_itself_in(vpc):
    closed = vpc.security_group(open_to_itself=False)
    checks = look_at_network({vpc.subnet(): vpc.zone}, [closed])
    assert checks["security groups"].result is Result.FAIL
    assert f"--source-group {closed}" in checks["security groups"].fix


def test_a_security_group_that_does_not_exist_is_named(vpc):
    checks = look_at_network({vpc.subnet(): vpc.zone}, ["sg-0123456789abcdef0"])
    assert "sg-0123456789abcdef0" in checks["security groups"].message


def test_a_subnet_without_a_way_out_is_refused(vpc):
    subnet = vpc.subnet()
    checks = look_at_network({subnet: vpc.zone}, [vpc.security_group()])
    way_out = checks[f"way out of {subnet}"]
    assert way_out.result is Result.FAIL
    assert "no route to other networks" in way_out.message
    assert "secretsmanager" in way_out.message


def test_a_public_subnet_is_no_way_out(vpc):
    """Functions and jobs have no public address, so an internet gateway does not help."""
    subnet = vpc.subnet(target=vpc.public_target())
    checks = look_at_network({subnet: vpc.zone}, [vpc.security_group()])
    assert "no public address" in checks[f"way out of {subnet}"].message


def test_endpoints_are_enough_for_aws_only(vpc, lake_aws):
    subnet = vpc.subnet()
    for service in network._SERVICES:
        vpc.endpoint(service, lake_aws.region)
    groups = [vpc.security_group()]
    without_proxy = look_at_network({subnet: vpc.zone}, groups)[f"way out of {subnet}"]
    assert without_proxy.result is Result.FAIL
    assert "no way to Confluent and Snowflake" in without_proxy.message
    with_proxy = look_at_network({subnet: vpc.zone}, groups, "http://proxy.example.com:3128")
    assert with_proxy[f"way out of {subnet}"].result is Result.OK


def test_other_routes_make_the_way_out_unknown(vpc):
    """AWS may be reachable through another VPC, whose endpoints this account does not show."""
    subnet = vpc.subnet()
    vpc.route(subnet, "10.128.0.0/9", TransitGatewayId="tgw-0123456789abcdef0")
    way_out = look_at_network({subnet: vpc.zone}, [vpc.security_group()])[f"way out of {subnet}"]
    assert way_out.result is Result.WARN
    assert "routes to tgw-0123456789abcdef0" in way_out.message


def test_a_virtual_private_gateway_is_a_way_out(vpc):
    subnet = vpc.subnet(target={"GatewayId": "vgw-0123456789abcdef0"})
    way_out = look_at_network({subnet: vpc.zone}, [vpc.security_group()])[f"way out of {subnet}"]
    assert (way_out.result, way_out.message) == (Result.OK, "through vgw-0123456789abcdef0")


def create_key(actions="kms:*", **policy_of):
    """Return the ARN of a key. `policy_of` are services and users that its policy allows `actions`."""
    kms = boto3.client("kms")
    arn = kms.create_key()["KeyMetadata"]["Arn"]
    if policy_of:
        statements = [{"Effect": "Allow", "Principal": policy_of, "Action": actions, "Resource": "*"}]
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        kms.put_key_policy(KeyId=arn, PolicyName="default", Policy=document)
    return arn


def look_at_keys(**named):
    ctx = context(encryption={**dict.fromkeys(("tables", "data", "secrets", "logs")), **named})
    return {check.name: check for check in keys.look(ctx)}


def test_a_key_that_works_is_ok(lake_aws):
    key = create_key()
    checks = look_at_keys(data=key)
    assert {name: check.result for name, check in checks.items()} == {
        "key of data": Result.OK,
        "policy of the key of data": Result.OK,
    }


def test_a_disabled_key_is_refused(lake_aws):
    key = create_key()
    boto3.client("kms").disable_key(KeyId=key)
    assert "is Disabled" in look_at_keys(tables=key)["key of tables"].message


def test_a_key_that_does_not_exist_is_named(lake_aws):
    key = f"arn:aws:kms:eu-west-1:{lake_aws.account}:key/00000000-0000-4000-8000-000000000000"
    check = look_at_keys(secrets=key)["key of secrets"]
    assert (check.result, check.fix) == (
        Result.FAIL,
        "Correct `encryption.secrets` in the deployment file",
    )


def test_an_asymmetric_key_is_refused(lake_aws):
    kms = boto3.client("kms")
    key = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048")["KeyMetadata"]["Arn"]
    assert "RSA_2048" in look_at_keys(data=key)["key of data"].message


def test_the_key_of_logs_must_let_the_services_in(lake_aws):
    root = f"arn:aws:iam::{lake_aws.account}:root"
    closed = create_key(AWS=root)
    refused = look_at_keys(logs=closed)["policy of the key of logs"]
    assert refused.result is Result.FAIL
    assert "logs.eu-west-1.amazonaws.com and cloudwatch.amazonaws.com" in refused.message
    services = ["logs.eu-west-1.amazonaws.com", "cloudwatch.amazonaws.com"]
    opened = create_key(AWS=root, Service=services)
    assert look_at_keys(logs=opened)["policy of the key of logs"].result is Result.OK


def test_a_policy_without_the_account_may_lock_the_roles_out(lake_aws):
    key = create_key(AWS=f"arn:aws:iam::{ACCOUNT}:role/security")
    assert look_at_keys(data=key)["policy of the key of data"].result is Result.WARN


def test_a_policy_that_only_describes_the_key_proves_nothing(lake_aws):
    key = create_key(
        AWS=f"arn:aws:iam::{lake_aws.account}:root", actions=["kms:Describe*", "kms:PutKeyPolicy"]
    )
    assert look_at_keys(data=key)["policy of the key of data"].result is Result.WARN


def look_at_buckets(**named):
    checks = storage.check_chosen_buckets(context(aws=named))
    return {check.name: check for check in checks}


def create_bucket(region="eu-west-1", key=None):
    name = f"existing-{next(_numbers)}"
    client = boto3.client("s3", region_name=region)
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
    if key:
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        client.put_bucket_encryption(
            Bucket=name,
            ServerSideEncryptionConfiguration={
                "Rules": [{"ApplyServerSideEncryptionByDefault": default}],
            },
        )
    return name


def test_a_bucket_that_exists_may_have_objects(lake_aws):
    bucket = create_bucket()
    boto3.client("s3").put_object(Bucket=bucket, Key="theirs", Body=b"1")
    check = look_at_buckets(existing_lake_bucket=bucket)["lake bucket"]
    assert (check.result, check.message) == (Result.OK, f"{bucket} in eu-west-1; it is never emptied")


def test_tableflows_bucket_must_be_empty_before_its_first_table(lake_aws):
    bucket = create_bucket()
    s3 = boto3.client("s3")
    assert look_at_buckets(existing_tableflow_bucket=bucket)["Tableflow's bucket"].result is Result.OK
    s3.put_object(Bucket=bucket, Key="theirs", Body=b"1")
    check = look_at_buckets(existing_tableflow_bucket=bucket)["Tableflow's bucket"]
    assert (check.result, "holds theirs" in check.message) == (Result.FAIL, True)
    assert "Name an empty bucket" in check.fix
    s3.put_object(Bucket=bucket, Key="10/11/v1/9f0c/metadata/1.metadata.json", Body=b"1")
    assert look_at_buckets(existing_tableflow_bucket=bucket)["Tableflow's bucket"].result is Result.OK


@pytest.mark.slow
def test_a_part_of_a_list_does_not_prove_that_tableflow_has_written_nothing(lake_aws):
    """Its table is behind the first page of a thousand keys."""
    bucket = create_bucket()
    s3 = boto3.client("s3")
    for number in range(1000):
        s3.put_object(Bucket=bucket, Key=f"00/{number:04}", Body=b"")
    s3.put_object(Bucket=bucket, Key="10/11/v1/9f0c/metadata/1.metadata.json", Body=b"1")
    check = look_at_buckets(existing_tableflow_bucket=bucket)["Tableflow's bucket"]
    assert (check.result, "is not known" in check.message) == (Result.WARN, True)


def test_a_bucket_that_should_exist_and_does_not_is_named(lake_aws):
    check = look_at_buckets(existing_tableflow_bucket="nobody-made-it")["Tableflow's bucket"]
    assert (check.result, check.message) == (Result.FAIL, "there is no bucket nobody-made-it")


def test_a_bucket_of_another_region_is_refused(lake_aws):
    bucket = create_bucket("us-west-2")
    check = look_at_buckets(existing_lake_bucket=bucket)["lake bucket"]
    assert (check.result, check.needed) == (Result.FAIL, "eu-west-1")


def test_the_key_of_a_bucket_that_exists_must_be_in_the_file(lake_aws):
    key = create_key()
    bucket = create_bucket(key=key)
    check = look_at_buckets(existing_lake_bucket=bucket)["lake bucket"]
    assert check.fix == f'Set `encryption.data = "{key}"` in the deployment file'


def test_the_key_of_a_bucket_has_several_names(lake_aws):
    """S3 keeps the id that somebody gave, and the file has the ARN."""
    key = create_key()
    bucket = create_bucket(key=key.rpartition("/")[2])
    ctx = context(aws={"existing_lake_bucket": bucket}, encryption={"data": key})
    (check,) = [check for check in storage.check_chosen_buckets(ctx) if check.name == "lake bucket"]
    assert check.result is Result.OK


def test_s3s_own_key_of_kms_needs_no_permission(lake_aws):
    bucket = create_bucket(key="alias/aws/s3")
    assert look_at_buckets(existing_lake_bucket=bucket)["lake bucket"].result is Result.OK


@pytest.mark.parametrize(("group", "name"), [("network", "subnets"), ("KMS keys", "KMS keys")])
def test_the_doctor_looks_at_network_and_keys(lake_aws, group, name):
    probes = {(probe.group.name, probe.name) for probe in doctor.list_probes(context())}
    assert (group, name) in probes
