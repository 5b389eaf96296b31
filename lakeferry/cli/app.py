"""What all commands share: the common options, the JSON document of `--json`, errors and exit codes."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import takewhile
from typing import Annotated, Any, Final, NoReturn

import attrs
import typer
from typer.core import TyperCommand, TyperGroup

from config.project import DEFAULT_STAGE, PROJECT
from lakeferry import __version__
from lakeferry.errors import DONE, FAILED, NOT_SET_UP, STOPPED, WRONG_INPUT, CommandFailed
from lakeferry.output import Output

NAME: Final = "lakeferry"
STAGE_VARIABLE: Final = "LAKEFERRY_STAGE"

#: Exit codes that every command can end with.
EXITS: Final = (DONE, FAILED, WRONG_INPUT, NOT_SET_UP, STOPPED)
#: The hint for --stage of commands that use an AWS account and a bucket directly, without a deployment.
WITHOUT_STAGE: Final = (
    "It works on the bucket and database in LAKEFERRY_BUCKET and LAKEFERRY_DATABASE (a deployment's "
    "outputs LakeBucketName and KafkaClusterId), or on the last demo: "
    "docs/how-to/run-against-your-own-catalog.md"
)
#: typer's exit code for Ctrl-C while no command is running.
_INTERRUPTED: Final = 130
#: A command: a function that takes a CommandContext and the command's own options, and returns the keys of
#: its JSON document.
CommandFunction = Callable[..., Mapping[str, Any]]


@attrs.frozen
class CommandContext:
    """The first argument of every command.

    With `yes`, the command doesn't prompt: it assumes yes, or uses defaults.
    """

    output: Output
    stage: str
    yes: bool = False


def _complete_stages(incomplete: str) -> list[str]:
    files = sorted(file.stem for file in (PROJECT / "deployments").glob("*.toml"))
    return [name for name in files if name.startswith(incomplete)]


_Stage = Annotated[
    str | None,
    typer.Option(
        "--stage",
        help=(
            f"The deployment stage, as in project/deployments/STAGE.toml. Default: {STAGE_VARIABLE}, or dev."
        ),
        autocompletion=_complete_stages,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only results and errors.")]
_Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show more details, and the traceback of an error.")
]
_NoColor = Annotated[
    bool, typer.Option("--no-color", help="Don't use colours. The variable NO_COLOR has the same effect.")
]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never prompt: assume yes, and use defaults.")]


def _remove_flag_types(params: list[Any]) -> list[Any]:
    """Remove the `<bool>` that typer's help shows after the name of a flag."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _remove_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _remove_flag_types(super().get_params(ctx))


def command_group(name: str | None = None, about: str | None = None) -> typer.Typer:
    """Return a group for the commands of a module. Without a `name`, they are top-level commands."""
    return typer.Typer(name=name, cls=Group, help=about, no_args_is_help=True, pretty_exceptions_enable=False)


@attrs.frozen
class Declared:
    """The documented interface of a command: the keys of its JSON document with their meanings, and its exit
    codes.

    `without_stage` is the hint for users who pass `--stage` to a command that doesn't take it.
    """

    json_keys: Mapping[str, str]
    exits: tuple[int, ...]
    without_stage: str = "Leave it out: this command is the same for every stage"


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    json_keys: Mapping[str, str],
    exits: tuple[int, ...] = (),
    stage: bool = False,
    yes: bool = False,
    without_stage: str = "",
) -> Callable[[CommandFunction], CommandFunction]:
    """Register a function `(call: CommandContext, …) -> Mapping` as a command.

    `json_keys` explains each key that the function returns; `exits` are exit codes in addition to EXITS;
    `stage` and `yes` say whether the command takes these options. Otherwise they are refused, before and
    after the command's name.
    """
    declared = Declared(
        json_keys,
        tuple(sorted({*EXITS, *exits})),
        **({"without_stage": without_stage} if without_stage else {}),
    )

    def register(work: CommandFunction) -> CommandFunction:
        own = [
            param
            for param in inspect.signature(work, eval_str=True).parameters.values()
            if param.name != "call"
        ]
        shared = [
            param
            for param in shared_options()
            if (param.name != "stage" or stage) and (param.name != "yes" or yes)
        ]

        def run(**given: Any) -> None:
            context = given.pop("context")
            call = _build_command_context(context, {param.name: given.pop(param.name) for param in shared})
            with report_errors(call.output):
                _refuse_unused(context, {param.name for param in shared}, declared)
                call.output.document(True, **work(call, **given))

        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        ordered = [param.replace(kind=inspect.Parameter.KEYWORD_ONLY) for param in (*own, *shared)]
        run.declared = declared  # type: ignore[attr-defined]
        run.__signature__ = inspect.Signature([context, *ordered])  # type: ignore[attr-defined]
        run.__annotations__ = {param.name: param.annotation for param in (context, *ordered)}
        app.command(name or work.__name__, cls=Command, help=inspect.getdoc(work))(run)
        return work

    return register


def shared_options() -> list[inspect.Parameter]:
    """Return the options that can be given before or after the command: those of `common`, without
    --version.
    """
    params = inspect.signature(common, eval_str=True).parameters.values()
    return [param for param in params if param.name not in ("context", "version")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


def common(
    *,
    context: typer.Context,
    stage: _Stage = None,
    as_json: _Json = False,
    quiet: _Quiet = False,
    verbose: _Verbose = False,
    no_color: _NoColor = False,
    yes: _Yes = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Store the options that stand before the command. `_build_command_context` reads them."""
    context.obj = {
        "stage": stage,
        "as_json": as_json,
        "quiet": quiet,
        "verbose": verbose,
        "no_color": no_color,
        "yes": yes,
    }


def _build_command_context(context: typer.Context, after: Mapping[str, Any]) -> CommandContext:
    """Merge the options before and after the command. Those after it take precedence."""
    before = context.find_root().obj or {}
    given = {name: after.get(name) or before.get(name) for name in (*before, *after)}
    output = Output(
        as_json=bool(given["as_json"]),
        quiet=bool(given["quiet"]),
        verbose=bool(given["verbose"]),
        color=not given["no_color"],
    )
    return CommandContext(
        output, given.get("stage") or os.environ.get(STAGE_VARIABLE) or DEFAULT_STAGE, bool(given.get("yes"))
    )


def _refuse_unused(context: typer.Context, taken: set[str], declared: Declared) -> None:
    """Raise CommandFailed if --stage or --yes stands before a command that doesn't take it."""
    before = context.find_root().obj or {}
    for name in ("stage", "yes"):
        if before.get(name) and name not in taken:
            path = context.command_path
            hint = declared.without_stage if name == "stage" else f"Leave it out: `{path}` never prompts"
            raise CommandFailed("USAGE", f"`{path}` takes no --{name}", hint)


def parse_time(option: str, text: str) -> datetime:
    """Parse the timestamp that a user gave for `option`, and return it in UTC. Raises CommandFailed."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise CommandFailed("AS-OF", f"{option} {text!r} is not a timestamp with a UTC offset")
    return instant.astimezone(UTC)


@contextmanager
def report_errors(output: Output) -> Iterator[None]:
    """Report every exception as a message and an exit code. A traceback is shown with --verbose only."""
    try:
        yield
    except CommandFailed as failure:
        fail(output, failure)
    except (KeyboardInterrupt, typer.Abort):
        fail(output, CommandFailed("STOPPED", "interrupted", "Run the command again"))
    except (BrokenPipeError, typer.Exit):
        # typer handles both without a message. BrokenPipeError: nobody reads the output any more.
        raise
    except Exception as error:
        from lakeferry import error_translation

        fail(output, error_translation.as_failure(error))


def fail(output: Output, failure: CommandFailed) -> NoReturn:
    fields = {
        "code": failure.code,
        "message": failure.message,
        "why": failure.why,
        "hint": failure.hint,
        "docs": failure.page,
    }
    output.document(False, **fields, details=failure.details, exit_code=failure.exit_code)
    output.err.print(f"{failure.code}  {failure.message}", style="bold", markup=False)
    if failure.why:
        output.err.print(f"  Likely cause: {failure.why}", markup=False)
    output.err.print(f"→ {failure.hint}", markup=False)
    output.err.print(f"  {failure.page}", markup=False)
    if failure.trace:
        output.debug(failure.trace)
    sys.exit(failure.exit_code)


class Root(Group):
    """The group of all commands. It reports usage errors in the same format as all other errors."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        argv = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(argv, NAME, complete_var, standalone_mode=False, **extra)
        except typer.TyperException as error:
            if not error.format_message():  # a group without a command, whose help typer has printed
                sys.exit(WRONG_INPUT)
            fail(_open_output(argv), _translate_usage_error(error))
        except Exception:
            with report_errors(_open_output(argv)):
                raise
        if code == _INTERRUPTED:
            with report_errors(_open_output(argv)):
                raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else DONE)


def _translate_usage_error(error: typer.TyperException) -> CommandFailed:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else NAME
    details = {"usage": " ".join(context.get_usage().split())} if context else None
    declared = getattr(context.command.callback, "declared", None) if context else None
    takes_stage = context and any(option.name == "stage" for option in context.command.params)
    if declared and not takes_stage and getattr(error, "option_name", "") == "--stage":
        return CommandFailed("USAGE", f"`{path}` takes no --stage", declared.without_stage, details)
    return CommandFailed("USAGE", error.format_message().rstrip("."), f"See `{path} --help`", details)


def _open_output(argv: Sequence[str]) -> Output:
    """Return an output for arguments that could not be parsed: only --json and --no-color are recognised."""
    options = list(takewhile(lambda word: word != "--", argv))
    return Output(as_json="--json" in options, color="--no-color" not in options)
