"""Functions of MiniStack that we stand in front of, each checked before the first is replaced.

A function of ours gets the one it replaces as its first argument, so that it can ask it, refuse before it, or change
what it answers.
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
#: The function that a replacement stands in front of.
Stock = Callable[..., Answer]
Replacement = Callable[..., Any]
Naming = Callable[[str, bytes], str | None]
#: What stock answers to a request, once it is awaited.
Asking = Callable[[], Coroutine[Any, Any, Answer]]
Handler = Callable[[Asking, "Request"], Awaitable[Answer]]
#: Where MiniStack says which resource a call is on.
_RESOURCE_ARN = (
    "ministack.core.iam_actions",
    "extract_resource_arn",
    "service method path headers body query_params region account_id",
)


class Request(NamedTuple):
    """As the services of MiniStack get it. Names of headers are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: dict[str, Any]

    def caller(self) -> tuple[str, str]:
        """Access key id, and region."""
        router = ministack("core.router")
        return router.extract_access_key_id(self.headers, self.query), router.extract_region(self.headers)


class HookMissing(Exception):
    """MiniStack is not built as the patches expect; the sentence names the hook."""


class Hook(NamedTuple):
    """A module-level function by name, and the names of the parameters that it must have."""

    module: str
    name: str
    parameters: tuple[str, ...]

    def find(self) -> Callable[..., Any]:
        try:
            found = getattr(importlib.import_module(self.module), self.name)
        except (ImportError, AttributeError) as missing:
            raise HookMissing(f"{self} is gone ({missing}). {_ADVICE}") from missing
        has = tuple(inspect.signature(found).parameters)
        if has != self.parameters:
            raise HookMissing(f"{self} now takes ({', '.join(has)}), not ({', '.join(self.parameters)}). {_ADVICE}")
        return found  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


_ADVICE = "Pin the MiniStack that the patches were written for, or write the patch anew"


class ProvisionerHook(NamedTuple):
    """One verb of a type of CloudFormation's. `stock` says whether MiniStack has it, and ours stands in front of it."""

    resource_type: str
    verb: str
    stock: bool

    def check(self) -> None:
        if self.stock and self.verb not in provisioners().get(self.resource_type, {}):
            raise HookMissing(f"CloudFormation's {self.resource_type} has no {self.verb}. {_ADVICE}")

    def put(self, replacement: Replacement) -> None:
        verbs = provisioners().setdefault(self.resource_type, {})
        verbs[self.verb] = functools.partial(replacement, verbs[self.verb]) if self.stock else replacement


class EntryHook(NamedTuple):
    """A function that a module keeps in a table, by the table's name and its key there."""

    module: str
    table: str
    key: str

    def check(self) -> None:
        if self.key not in self._table():
            raise HookMissing(f"{self.module}.{self.table} has no {self.key}. {_ADVICE}")

    def put(self, replacement: Replacement) -> None:
        table = self._table()
        table[self.key] = functools.partial(replacement, table[self.key])

    def _table(self) -> dict[str, Any]:
        table: dict[str, Any] = getattr(importlib.import_module(self.module), self.table, {})
        return table


class Patch:
    """One way in which MiniStack is brought nearer to AWS: its name, and the functions that do it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_tables: dict[ProvisionerHook | EntryHook, Replacement] = {}
        self._replacements: dict[Hook, Replacement] = {}

    def provisions(self, resource_type: str, verb: str, *, stock: bool = False) -> Callable[[Replacement], Replacement]:
        """Decorate CloudFormation's `create`, `update` or `delete` of a type; with `stock`, as `replaces` does."""

        def register(replacement: Replacement) -> Replacement:
            self.in_tables[ProvisionerHook(resource_type, verb, stock)] = replacement
            return replacement

        return register

    def replaces_entry(self, module: str, table: str, key: str) -> Callable[[Replacement], Replacement]:
        """Decorate the function that stands in front of the one in `module.table[key]`."""

        def register(replacement: Replacement) -> Replacement:
            self.in_tables[EntryHook(module, table, key)] = replacement
            return replacement

        return register

    def replaces(self, module: str, name: str, parameters: str) -> Callable[[Replacement], Replacement]:
        """Decorate the function that stands in front of `module.name`."""

        def register(replacement: Replacement) -> Replacement:
            self._replacements[Hook(module, name, tuple(parameters.split()))] = replacement
            return replacement

        return register

    def handles(self, module: str, options: str = "") -> Callable[[Handler], Handler]:
        """Decorate what stands in front of all requests to a service, whose module it is. `options` are further parameters."""

        def register(handler: Handler) -> Handler:
            async def handle(stock: Callable[..., Coroutine[Any, Any, Answer]], *given: Any, **named: Any) -> Answer:
                return await handler(functools.partial(stock, *given, **named), Request(*given[: len(Request._fields)]))

            self.replaces(module, "handle_request", f"method path headers body query_params {options}")(handle)
            return handler

        return register

    def names_resources(self, service: str) -> Callable[[Naming], Naming]:
        """Decorate what says of a JSON service's call, by its target and body, which resource of it IAM is to check.

        It gives the ARN's last part, or None for what stock names as it does.
        """

        def register(naming: Naming) -> Naming:
            self.replaces(*_RESOURCE_ARN)(functools.partial(_resource_arn, service, naming))
            return naming

        return register

    def __iter__(self) -> Iterator[tuple[Hook, Replacement]]:
        return iter(self._replacements.items())


def _resource_arn(  # noqa: PLR0917  (MiniStack's own parameters)
    own: str,
    naming: Naming,
    stock: Callable[..., str],
    service: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    query_params: dict[str, Any],
    region: str,
    account_id: str,
) -> str:
    if service == own and (named := naming(headers.get("x-amz-target", ""), body)):
        return f"arn:aws:{service}:{region}:{account_id}:{named}"
    return stock(service, method, path, headers, body, query_params, region, account_id)


def in_background(work: Callable[..., object], *given: Any) -> None:
    """In a thread that knows whose request this is: account and region. The server's own can't wait for a call to itself."""
    threading.Thread(target=contextvars.copy_context().run, args=(work, *given), daemon=True).start()


def apply(patches: Iterable[Patch]) -> None:
    """Put every patch in place, or none. Of two on one hook, the later one stands in front."""
    given = list(patches)
    wanted = [pair for patch in given for pair in patch]
    in_tables = [pair for patch in given for pair in patch.in_tables.items()]
    for hook, _ in wanted:
        hook.find()
    for kept, _ in in_tables:
        kept.check()
    for hook, replacement in wanted:
        module = importlib.import_module(hook.module)
        original = getattr(module, hook.name)
        setattr(module, hook.name, functools.wraps(original)(functools.partial(replacement, original)))
    for kept, replacement in in_tables:
        kept.put(replacement)


def provisioners() -> dict[str, dict[str, Any]]:
    """CloudFormation's verbs by type.

    create(logical_id, props, stack_name), update(id, old, new, stack_name) and delete(id, props).
    """
    handlers: dict[str, dict[str, Any]] = ministack("services.cloudformation.provisioners")._RESOURCE_HANDLERS
    return handlers


def ministack(name: str) -> Any:
    """One of its modules, by the name within the package; they exist only in the server's own process."""
    return importlib.import_module(f"ministack.{name}")
