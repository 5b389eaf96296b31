"""Replaces functions of MiniStack. All hooks are checked before the first function is replaced.

A replacement gets the original function as its first argument: it can call it, refuse the request, or change
the response.
"""

from __future__ import annotations

import contextvars
import functools
import importlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, NamedTuple

#: What MiniStack's request handlers return: status, headers, body.
Answer = tuple[int, dict[str, str], Any]
#: The function that is replaced.
Original = Callable[..., Answer]
Replacement = Callable[..., Any]
Naming = Callable[[str, bytes], str | None]
#: Calls MiniStack's own handler of the request.
OriginalRequest = Callable[[], Coroutine[Any, Any, Answer]]
Handler = Callable[[OriginalRequest, "Request"], Awaitable[Answer]]
_ADVICE = "Pin the MiniStack version that the patches were written for, or rewrite the patch"
#: MiniStack's function that returns the ARN of the resource that a call needs permission on.
_RESOURCE_ARN = (
    "ministack.core.iam_actions",
    "extract_resource_arn",
    "service method path headers body query_params region account_id",
)


class Request(NamedTuple):
    """A request as MiniStack's services get it. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: dict[str, Any]

    def read_caller(self) -> tuple[str, str]:
        """Return the access key id and the region."""
        router = import_ministack("core.router")
        return router.extract_access_key_id(self.headers, self.query), router.extract_region(self.headers)


class HookMissing(Exception):
    """MiniStack lacks a function that a patch replaces, or its parameters have changed.

    The message names it.
    """


class Hook(NamedTuple):
    """A module-level function by name, with the names of its parameters."""

    module: str
    name: str
    parameters: tuple[str, ...]

    def find(self) -> Callable[..., Any]:
        try:
            function = getattr(importlib.import_module(self.module), self.name)
        except (ImportError, AttributeError) as missing:
            raise HookMissing(f"{self} is gone ({missing}). {_ADVICE}") from missing
        actual_parameters = tuple(inspect.signature(function).parameters)
        if actual_parameters != self.parameters:
            actual = ", ".join(actual_parameters)
            expected = ", ".join(self.parameters)
            raise HookMissing(f"{self} now takes ({actual}), not ({expected}). {_ADVICE}")
        return function  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class ProvisionerHook(NamedTuple):
    """The create, update or delete of a CloudFormation type.

    `original`: MiniStack has it; the replacement's first argument.
    """

    resource_type: str
    verb: str
    original: bool

    def check(self) -> None:
        if self.original and self.verb not in get_provisioners().get(self.resource_type, {}):
            raise HookMissing(f"CloudFormation's {self.resource_type} has no {self.verb}. {_ADVICE}")

    def put(self, replacement: Replacement) -> None:
        verbs = get_provisioners().setdefault(self.resource_type, {})
        if self.original:
            replacement = functools.partial(replacement, verbs[self.verb])
        verbs[self.verb] = replacement


class EntryHook(NamedTuple):
    """A function in a module-level dictionary."""

    module: str
    table: str
    key: str

    def check(self) -> None:
        if self.key not in self._get_table():
            raise HookMissing(f"{self.module}.{self.table} has no {self.key}. {_ADVICE}")

    def put(self, replacement: Replacement) -> None:
        table = self._get_table()
        table[self.key] = functools.partial(replacement, table[self.key])

    def _get_table(self) -> dict[str, Any]:
        table: dict[str, Any] = getattr(importlib.import_module(self.module), self.table, {})
        return table


class Patch:
    """One difference between MiniStack and AWS: its name, and the replacement functions that remove it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_tables: dict[ProvisionerHook | EntryHook, Replacement] = {}
        self._replacements: dict[Hook, Replacement] = {}

    def provisions(
        self, resource_type: str, verb: str, *, original: bool = False
    ) -> Callable[[Replacement], Replacement]:
        """Decorate the `create`, `update` or `delete` of a CloudFormation type.

        `original`: it replaces MiniStack's own.
        """

        def register(replacement: Replacement) -> Replacement:
            self.in_tables[ProvisionerHook(resource_type, verb, original)] = replacement
            return replacement

        return register

    def replaces_entry(self, module: str, table: str, key: str) -> Callable[[Replacement], Replacement]:
        """Decorate the replacement of `module.table[key]`."""

        def register(replacement: Replacement) -> Replacement:
            self.in_tables[EntryHook(module, table, key)] = replacement
            return replacement

        return register

    def replaces(self, module: str, name: str, parameters: str) -> Callable[[Replacement], Replacement]:
        """Decorate the replacement of `module.name`, which has these parameters."""

        def register(replacement: Replacement) -> Replacement:
            self._replacements[Hook(module, name, tuple(parameters.split()))] = replacement
            return replacement

        return register

    def handles(self, module: str, options: str = "") -> Callable[[Handler], Handler]:
        """Decorate the handler of all requests to a service.

        `options` names further parameters of its handle_request.
        """

        def register(handler: Handler) -> Handler:
            async def handle(
                original: Callable[..., Coroutine[Any, Any, Answer]], *args: Any, **kwargs: Any
            ) -> Answer:
                return await handler(
                    functools.partial(original, *args, **kwargs), Request(*args[: len(Request._fields)])
                )

            self.replaces(module, "handle_request", f"method path headers body query_params {options}")(
                handle
            )
            return handler

        return register

    def names_resources(self, service: str) -> Callable[[Naming], Naming]:
        """Decorate the function that returns the resource on which IAM checks the permission for a call of a
        JSON service.

        It gets the X-Amz-Target header and the body. It returns the last part of the ARN, or None for
        MiniStack's own ARN.
        """

        def register(naming: Naming) -> Naming:
            self.replaces(*_RESOURCE_ARN)(functools.partial(_build_resource_arn, service, naming))
            return naming

        return register

    def __iter__(self) -> Iterator[tuple[Hook, Replacement]]:
        return iter(self._replacements.items())


def _build_resource_arn(  # noqa: PLR0917  (MiniStack's own parameters)
    named_service: str,
    naming: Naming,
    original: Callable[..., str],
    service: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    query_params: dict[str, Any],
    region: str,
    account_id: str,
) -> str:
    if service == named_service and (resource := naming(headers.get("x-amz-target", ""), body)):
        return f"arn:aws:{service}:{region}:{account_id}:{resource}"
    return original(service, method, path, headers, body, query_params, region, account_id)


def run_in_background(work: Callable[..., object], *args: Any) -> None:
    """Run `work` in a thread, with the request's account and region.

    The event loop can't wait for a call to this server.
    """
    threading.Thread(target=contextvars.copy_context().run, args=(work, *args), daemon=True).start()


def apply(patches: Iterable[Patch]) -> None:
    """Apply all patches, or none.

    Of two patches of one function, the later one is called first. Raises HookMissing.
    """
    functions: list[tuple[Hook, Replacement]] = []
    entries: list[tuple[ProvisionerHook | EntryHook, Replacement]] = []
    for patch in patches:
        functions += patch
        entries += patch.in_tables.items()
    for hook, _ in functions:
        hook.find()
    for entry, _ in entries:
        entry.check()
    for hook, replacement in functions:
        module = importlib.import_module(hook.module)
        original = getattr(module, hook.name)
        setattr(module, hook.name, functools.wraps(original)(functools.partial(replacement, original)))
    for entry, replacement in entries:
        entry.put(replacement)


def get_provisioners() -> dict[str, dict[str, Any]]:
    """Return the provisioners of CloudFormation types: by type, the functions

    create(logical_id, props, stack_name), update(id, old, new, stack_name) and delete(id, props).
    """
    handlers: dict[str, dict[str, Any]] = import_ministack(
        "services.cloudformation.provisioners"
    )._RESOURCE_HANDLERS
    return handlers


def import_ministack(name: str) -> Any:
    """Return a module of MiniStack by its name in the package.

    It can be imported only in the server's process.
    """
    return importlib.import_module(f"ministack.{name}")


def get_region() -> str:
    """Return the region of the request that is processed."""
    return str(import_ministack("core.responses").get_region())
