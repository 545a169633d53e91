"""Groups of commands in which one need not be named."""

from typing import Any

from typer.core import TyperGroup


def group_with_default(name: str) -> type[TyperGroup]:
    """A group that takes whatever names none of its commands as arguments of the default one."""

    class Group(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
                args = [name, *args]
            return super().parse_args(ctx, args)

    return Group
