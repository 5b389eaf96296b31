"""What all commands share: the common options, the JSON document of `--json`, errors and exit codes."""

from __future__ import annotations

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
#: typer's exit code for Ctrl-C while no command is running.
_INTERRUPTED: Final = 130
#: A command: a function that takes a CommandContext and the command's own options, and returns the keys of
#: its JSON document.
CommandFunction = Callable[..., Mapping[str, Any]]


@attrs.frozen
class Declared:
    """The documented interface of a command: the keys of its JSON document with their meanings, its exit
    codes, and whether it takes --stage and --yes.

    `without_stage` is the hint for users who pass `--stage` to a command that doesn't take it.
    """

    json_keys: Mapping[str, str]
    exits: tuple[int, ...]
    stage: bool
    yes: bool
    without_stage: str


class CommandContext(typer.Context):
    """The first argument of every command: typer's context, with the values of the shared options.

    With `yes`, the command doesn't prompt: it assumes yes, or uses defaults.
    """

    output: Output
    stage: str
    yes: bool

    def take_shared_options(self) -> None:
        """Move the shared options out of typer's parameters, which are the command's own arguments."""
        values = {name: self.params.pop(name, None) for name in SHARED_OPTIONS}
        self.output = Output(
            as_json=bool(values["as_json"]),
            quiet=bool(values["quiet"]),
            verbose=bool(values["verbose"]),
            color=not values["no_color"],
        )
        self.stage = values["stage"] or os.environ.get(STAGE_VARIABLE) or DEFAULT_STAGE
        self.yes = bool(values["yes"])


def complete_stages(incomplete: str) -> list[str]:
    files = sorted(file.stem for file in (PROJECT / "deployments").glob("*.toml"))
    return [name for name in files if name.startswith(incomplete)]


def _declare_shared_options(
    *,
    stage: Annotated[
        str | None,
        typer.Option(
            help=(
                "The deployment stage, as in project/deployments/STAGE.toml. "
                f"Default: {STAGE_VARIABLE}, or dev."
            ),
            autocompletion=complete_stages,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document to standard output.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only results and errors.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show more details, and the traceback of an error.")
    ] = False,
    no_color: Annotated[
        bool,
        typer.Option("--no-color", help="Don't use colours. The variable NO_COLOR has the same effect."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Never prompt: assume yes, and use defaults.")
    ] = False,
) -> None:
    """Only the signature is used: typer reads the options from it."""


_DECLARING = typer.Typer(add_completion=False)
_DECLARING.command()(_declare_shared_options)
#: The options that all commands share, by name. Only some commands take --stage and --yes.
SHARED_OPTIONS: Final[Mapping[str, Any]] = {
    str(option.name): option for option in typer.main.get_command(_DECLARING).params
}


def _remove_flag_types(params: list[Any]) -> list[Any]:
    """Remove the `<bool>` that typer's help shows after the name of a flag."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command with the shared options. It reports its result, or its error."""

    context_class = CommandContext

    def __init__(self, name: str | None, *, callback: Any, params: list[Any], **settings: Any) -> None:
        declared: Declared = callback.declared
        without = {name for name in ("stage", "yes") if not getattr(declared, name)}
        shared = [option for name, option in SHARED_OPTIONS.items() if name not in without]
        super().__init__(name, callback=callback, params=[*params, *shared], **settings)

    def get_params(self, ctx: Any) -> list[Any]:
        return _remove_flag_types(super().get_params(ctx))

    def invoke(self, ctx: Any) -> None:
        ctx.take_shared_options()
        with report_errors(ctx.output):
            ctx.output.document(True, **super().invoke(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _remove_flag_types(super().get_params(ctx))


def command_group(name: str | None = None, about: str | None = None) -> typer.Typer:
    """Return a group for the commands of a module. Without a `name`, they are top-level commands."""
    return typer.Typer(name=name, cls=Group, help=about, no_args_is_help=True, pretty_exceptions_enable=False)


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    json_keys: Mapping[str, str],
    exits: tuple[int, ...] = (),
    stage: bool = False,
    yes: bool = False,
    without_stage: str = "Leave it out: this command is the same for every stage",
) -> Callable[[CommandFunction], CommandFunction]:
    """Register a function `(call: CommandContext, …) -> Mapping` as a command.

    `json_keys` explains each key that the function returns; `exits` are exit codes in addition to EXITS;
    `stage` and `yes` say whether the command takes these options.
    """
    all_exits = tuple(sorted({*EXITS, *exits}))
    declared = Declared(json_keys, all_exits, stage=stage, yes=yes, without_stage=without_stage)

    def register(work: CommandFunction) -> CommandFunction:
        work.declared = declared  # type: ignore[attr-defined]
        return app.command(name or work.__name__, cls=Command)(work)

    return register


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


def common(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Take the options that stand before the name of a command."""


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
    message = error.format_message().rstrip(".")
    declared: Declared | None = getattr(context.command.callback, "declared", None) if context else None
    option = _find_shared_option(getattr(error, "option_name", ""))
    taken: set[str] = set()
    if context:
        taken.update(*(param.opts for param in context.command.params))
    if option is None or option in taken:
        return CommandFailed("USAGE", message, f"See `{path} --help`", details)
    if declared is None:
        hint = f"Write {option} at the end of the command. See `{path} --help`"
        return CommandFailed("USAGE", message, hint, details)
    if option == "--stage":
        return CommandFailed("USAGE", f"`{path}` takes no --stage", declared.without_stage, details)
    hint = f"Leave it out: `{path}` never prompts. See also `{path} --help`"
    return CommandFailed("USAGE", f"`{path}` takes no {option}", hint, details)


def _find_shared_option(spelling: str) -> str | None:
    """Return the long spelling of a shared option."""
    for option in SHARED_OPTIONS.values():
        if spelling in option.opts:
            return str(option.opts[0])
    return None


def _open_output(argv: Sequence[str]) -> Output:
    """Return an output for arguments that could not be parsed: only --json and --no-color are recognised."""
    options = list(takewhile(lambda word: word != "--", argv))
    return Output(as_json="--json" in options, color="--no-color" not in options)
