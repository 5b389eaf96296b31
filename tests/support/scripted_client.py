"""An AWS client whose answers a test writes down."""

from __future__ import annotations

from botocore.exceptions import ClientError


class ScriptedClient:
    """A client that gives the answers of each operation in their order, and the last one again and again. A
    text is the code of an error.

    `calls` has the operations with their parameters.
    """

    def __init__(self, **answers):
        self.answers = {operation: list(in_order) for operation, in_order in answers.items()}
        self.calls = []

    def __getattr__(self, operation):
        def call(**parameters):
            self.calls.append((operation, parameters))
            answers = self.answers.get(operation) or [{}]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, str):
                raise ClientError({"Error": {"Code": answer, "Message": "words"}}, operation)
            return answer

        return call

    def list_operations(self):
        return [operation for operation, _ in self.calls]
