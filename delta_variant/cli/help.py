"""The layout of `--help`: commands in groups, whole descriptions, readable names of values, and examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ..errors import printable
from .output import console, wrapped

ARGUMENTS = "delta_variant.arguments"
COMMON_OPTIONS = "Common options"
TYPE_NAMES: Mapping[str, str] = {
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<int>": "N",
    "<float>": "NUMBER",
    "<Path>": "FILE",
}
"""The names of values in help, instead of their Python types."""


def examples_text(examples: tuple[str, ...]) -> str:
    """Return the end of a help text that lists examples. The mark \\b keeps its line breaks."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in examples)])


class Command(TyperCommand):
    """A command whose help names its arguments as they are typed: `INPUT... TABLE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, and keep them, because the order of the clauses of a merge counts."""
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line after the name of the command."""
        arguments = [_argument_name(each) for each in self.get_params(ctx) if _is_argument(each)]
        return [self.options_metavar or "", *arguments]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options, and the options that all commands have."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Clauses": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if _is_argument(parameter):
                sections["Arguments"].append((_argument_name(parameter), record[1]))
            else:
                panel = getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault(panel, []).append((_with_type_names(record[0]), record[1]))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=26)


class Group(TyperGroup):
    """A group of commands whose help lists them under the titles of their `rich_help_panel`.

    Errors of usage are broken between words, as all other errors are.
    """

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse the arguments before the name of a command."""
        with _wrapped_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        with _wrapped_errors():
            return super().invoke(ctx)

    def summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:
        """Yield title, name and summary of each command."""
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            yield getattr(command, "rich_help_panel", None) or "Commands", name, summary_of(command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with whole descriptions, in order of registration."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for title, name, summary in self.summaries(ctx):
            panels.setdefault(title, []).append((name, summary))
        width = max((len(name) for records in panels.values() for name, _ in records), default=0)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in records])


@contextmanager
def _wrapped_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # typer does not export the classes of these errors. The message of one of them is the help.
        is_help = type(error).__name__ == "NoArgsIsHelpError"
        if (message := getattr(error, "format_message", None)) and not is_help:
            prefix = "Error: "
            # typer shows the messages of pydantic.
            text = message().replace(" Value error, ", " ")
            text = wrapped(console(stderr=True), printable(f"{prefix}{text}"))
            vars(error)["format_message"] = lambda: text.removeprefix(prefix)
        raise


def summary_of(command: Any) -> str:
    """Return the first paragraph of the description of a command."""
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _argument_name(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper())
    return name if parameter.required else f"[{name}]"


def _with_type_names(record: str) -> str:
    return " ".join(
        word.strip("<>") if word.startswith("<") and "|" in word else TYPE_NAMES.get(word, word)
        for word in record.split(" ")
    )
