"""A failed first deployment of prod.toml: CloudFormation rolls it back and deletes what was created."""

from __future__ import annotations

import pytest

from lambdas.shared.errors import LakeferryError
from tests.support import shipped
from tests.support.confluent_environment import Organization
from tests.support.confluent_lives import environment


@pytest.fixture
def org():
    org = Organization()
    yield org
    org.close()


@pytest.fixture
def cluster(org):
    given = shipped.load("prod").deployment
    assert given.confluent.deletion_protection
    one = org.resource(
        "kafka_cluster",
        "Cluster",
        environment_id=environment(org),
        region=given.aws.region,
        type=given.confluent.cluster_type,
        availability=given.confluent.availability,
        deletion_protection=str(given.confluent.deletion_protection).lower(),
    )
    org.invocations.stacks.status = "CREATE_IN_PROGRESS"
    one.create()
    return one


@pytest.mark.parametrize("status", ["ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"])
def test_the_protected_cluster_of_a_failed_first_deployment_is_deleted(org, cluster, status):
    org.invocations.stacks.status = status
    cluster.delete()
    org.settle()
    assert "clusters" not in {kind for kind, _ in org.objects()}


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"])
def test_the_cluster_of_a_working_deployment_stays_protected(org, cluster, status):
    org.invocations.stacks.status = status
    with pytest.raises(LakeferryError, match="CFL-DELETION-PROTECTED"):
        cluster.delete()
    assert "clusters" in {kind for kind, _ in org.objects()}
