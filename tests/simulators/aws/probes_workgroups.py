"""What tells AWS from stock MiniStack in Athena's workgroups: what they hold, and who may see it."""

from __future__ import annotations

from athena_kit import Athena
from aws_clients import error_of
from stack_kit import Stack

MALFORMED = "InvalidRequestException"


def wants_permission_on_the_workgroup_of_a_query(aws):
    athena, other = Athena(aws), Athena(aws)
    number = athena.start("SELECT 1")
    asked = [each.as_role().get_query_execution for each in (athena, other)]
    return [error_of(each, QueryExecutionId=number) for each in asked] == [None, "AccessDeniedException"]


def saved(athena, **given):
    asked = {"Name": "q", "Database": athena.database, "QueryString": "SELECT 1", "WorkGroup": athena.workgroup}
    return athena.client.create_named_query(**(asked | given))["NamedQueryId"]


def lists_saved_queries_of_a_workgroup(aws):
    athena = Athena(aws)
    number = saved(athena)
    listed = athena.client.list_named_queries(WorkGroup=athena.workgroup)["NamedQueryIds"]
    found = athena.client.get_named_query(NamedQueryId=number)["NamedQuery"]["QueryString"]
    return (listed, found) == ([number], "SELECT 1") and number not in athena.client.list_named_queries()["NamedQueryIds"]


def pages_saved_queries(aws):
    athena = Athena(aws)
    numbers = {saved(athena, Name=f"q{number}") for number in range(51)}
    pages = list(athena.client.get_paginator("list_named_queries").paginate(WorkGroup=athena.workgroup))
    return len(pages) == 2 and {number for page in pages for number in page["NamedQueryIds"]} == numbers


def saves_no_query_in_a_workgroup_that_is_not_there(aws):
    return error_of(saved, Athena(aws), WorkGroup="none") == MALFORMED


def keeps_a_workgroup_that_holds_queries(aws):
    athena = Athena(aws)
    number = saved(athena)
    refused = error_of(athena.client.delete_work_group, WorkGroup=athena.workgroup)
    athena.client.delete_work_group(WorkGroup=athena.workgroup, RecursiveDeleteOption=True)
    return (refused, error_of(athena.client.get_named_query, NamedQueryId=number)) == (MALFORMED, MALFORMED)


def keeps_a_workgroup_of_a_stack_that_holds_queries(aws):
    stack = Stack(aws, "AWS::Athena::WorkGroup", Name="workgroup-that-holds")
    number = saved(Athena(aws), WorkGroup=stack.resource)
    full = stack.delete()
    error_of(aws.client("athena").delete_named_query, NamedQueryId=number)
    return (full, stack.delete()) == ("DELETE_FAILED", "DELETE_COMPLETE")


PROBES = {
    "athena_workgroups": [
        wants_permission_on_the_workgroup_of_a_query,
        lists_saved_queries_of_a_workgroup,
        pages_saved_queries,
        saves_no_query_in_a_workgroup_that_is_not_there,
        keeps_a_workgroup_that_holds_queries,
        keeps_a_workgroup_of_a_stack_that_holds_queries,
    ],
}
