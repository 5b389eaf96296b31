"""Reads from the templates who may do what. Follows values through references and imports, and evaluates
statements as IAM does.

An account's number, a region and a partition are represented by their names, and generated values as
<part.Id.Attribute>.
"""

from __future__ import annotations

import fnmatch
import json

import attrs

ACCOUNT = "111122223333"


@attrs.frozen
class Grant:
    """A statement of a role's policy, with all values as text."""

    role: str
    sid: str
    effect: str
    actions: list[str]
    resources: list[str]
    conditions: dict

    def covers(self, action, resource):
        return any(_matches(action.lower(), item.lower()) for item in self.actions) and any(
            _matches(resource, item) for item in self.resources
        )

    def allows(self, action, resource, context):
        """Decide with the conditions, for a request with this context."""
        met = all(_holds(operator, tests, context) for operator, tests in self.conditions.items())
        return self.effect == "Allow" and self.covers(action, resource) and met


class Reader:
    """Reads values of an assembly's templates as text."""

    def __init__(self, assembly):
        self.assembly = assembly
        self._pseudo = {
            "AWS::AccountId": ACCOUNT,
            "AWS::Partition": "aws",
            "AWS::Region": assembly.plan.deployment.aws.region,
            "AWS::URLSuffix": "amazonaws.com",
        }

    def text(self, value, part):
        if isinstance(value, list):
            return [self.text(item, part) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, given),) = value.items()
            if found := self._intrinsic(function, given, part):
                return found
        return {name: self.text(one, part) for name, one in value.items()}

    def _intrinsic(self, function, given, part):
        if function == "Ref":
            return self._pseudo.get(given) or self._secret(part, given) or f"<{part}.{given}>"
        if function == "Fn::GetAtt":
            return f"<{part}.{'.'.join(given)}>"
        if function == "Fn::Join":
            return given[0].join(str(self.text(item, part)) for item in given[1])
        if function == "Fn::ImportValue":
            return self._imported(given)
        if function == "Fn::Sub":
            text = given
            for name, value in self._pseudo.items():
                text = text.replace(f"${{{name}}}", value)
            return text
        return None

    def _secret(self, part, logical_id):
        """Return the ARN of a secret with a name, by which policies can refer to it."""
        body = self.assembly.templates[part]["Resources"].get(logical_id, {})
        if body.get("Type") == "AWS::SecretsManager::Secret" and (name := body["Properties"].get("Name")):
            return f"arn:aws:secretsmanager:{self._pseudo['AWS::Region']}:{ACCOUNT}:secret:{name}-abcdef"
        return None

    def _imported(self, name):
        for part, template in self.assembly.templates.items():
            for output in template.get("Outputs", {}).values():
                if output.get("Export", {}).get("Name") == name:
                    return self.text(output["Value"], part)
        raise LookupError(f"nobody exports {name}")

    def roles(self):
        """Return the roles' properties by <part.Id>."""
        found = self.assembly.resources("AWS::IAM::Role")
        return {f"{part}.{logical_id}": self.text(body, part) for (part, logical_id), body in found.items()}

    def grants(self):
        found = []
        for (part, logical_id), body in self.assembly.resources("AWS::IAM::Role").items():
            for policy in body.get("Policies", []):
                found += self._of_document(f"{part}.{logical_id}", policy["PolicyDocument"], part)
        for (part, _), body in self.assembly.resources("AWS::IAM::Policy").items():
            for role in body.get("Roles", []):
                found += self._of_document(self.text(role, part).strip("<>"), body["PolicyDocument"], part)
        return found

    def trusts(self):
        """Return (role, statement) of every statement about who may assume a role."""
        return [
            (role, statement)
            for role, body in self.roles().items()
            for statement in body["AssumeRolePolicyDocument"]["Statement"]
        ]

    def _of_document(self, role, document, part):
        for statement in document["Statement"]:
            read = self.text(statement, part)
            yield Grant(
                role=role,
                sid=read.get("Sid", ""),
                effect=read["Effect"],
                actions=_listed(read.get("Action", [])),
                resources=_listed(read.get("Resource", [])),
                conditions=read.get("Condition", {}),
            )


def allowed(grants, action, resource):
    """Decide as IAM does, with all conditions met: a deny wins, and what no statement allows is denied."""
    covering = [grant for grant in grants if grant.covers(action, resource)]
    return bool(covering) and all(grant.effect == "Allow" for grant in covering)


def admits(statement, principal, action, context):
    """Return whether a trust statement admits `principal` with this context of the request."""
    if statement["Effect"] != "Allow" or action not in _listed(statement["Action"]):
        return False
    if principal not in [item for named in statement["Principal"].values() for item in _listed(named)]:
        return False
    return all(_holds(operator, tests, context) for operator, tests in statement.get("Condition", {}).items())


def _holds(operator, tests, context):
    wanted = {name: _listed(values) for name, values in tests.items()}
    if operator not in ("StringEquals", "StringLike", "ArnLike", "ArnEquals"):
        raise LookupError(f"the evaluator doesn't know {operator}")
    match = (lambda value, one: value == one) if operator == "StringEquals" else _matches
    return all(
        name in context and any(match(context[name], expected) for expected in values)
        for name, values in wanted.items()
    )


def _matches(value, pattern):
    return fnmatch.fnmatchcase(value, pattern.replace("[", "[[]"))


def _listed(value):
    return value if isinstance(value, list) else [value]


def as_json(value):
    return json.dumps(value, indent=1, sort_keys=True) + "\n"
