"""A VPC in an embedded AWS, as a department for networks hands one to a team."""

from __future__ import annotations

import itertools

#: What Lambda does with a function's role (managed policy AWSLambdaVPCAccessExecutionRole).
INTERFACES_OF_LAMBDA = [
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
]
#: What Glue does with a job's role in a VPC (managed policy AWSGlueServiceRole).
RIGHTS_OF_GLUE = (
    (["ec2:Describe*", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"], "*"),
    (["ec2:CreateTags", "ec2:DeleteTags"], "arn:aws:ec2:*:*:network-interface/*"),
    ("glue:GetConnection", "*"),
)
_numbers = itertools.count(1)


class Network:
    """A VPC with two private subnets in two zones, a NAT gateway and an endpoint of S3, and a security group."""

    def __init__(self, ec2, *, lets_members_in=True, reaches_s3=True):
        region = ec2.meta.region_name
        self.vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.zones = [f"{region}a", f"{region}b"]
        self.subnets = [
            ec2.create_subnet(VpcId=self.vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone)[
                "Subnet"
            ]["SubnetId"]
            for number, zone in enumerate(self.zones)
        ]
        self.group = ec2.create_security_group(
            GroupName=f"exports-{next(_numbers)}", Description="exports", VpcId=self.vpc
        )["GroupId"]
        if lets_members_in:
            ec2.authorize_security_group_ingress(
                GroupId=self.group, IpPermissions=[self_reference(self.group)]
            )
        table = ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"]
        for subnet in self.subnets:
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
        if reaches_s3:
            gateway = ec2.create_nat_gateway(SubnetId=self.subnets[0])["NatGateway"]["NatGatewayId"]
            ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=gateway)
            ec2.create_vpc_endpoint(
                VpcId=self.vpc, ServiceName=f"com.amazonaws.{region}.s3", RouteTableIds=[table]
            )


def self_reference(group):
    """Return the rule that lets a group's members reach each other on all TCP ports."""
    return {"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535, "UserIdGroupPairs": [{"GroupId": group}]}
