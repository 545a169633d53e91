"""`sfumato users`: who may ask a server for live tables; a token is shown once and never again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Group
from rich.text import Text

from sfumato.cli.screen import AsJson, Table, screen, show
from sfumato.cli.usage import Commands
from sfumato.serve.core.users import Role, User, Users

users_app = typer.Typer(
    help="Add, list and revoke the users of a server: those who may ask for live tables.\n\n"
    "Published tables need no token. A server that runs takes notice at once.",
    no_args_is_help=True,
    cls=Commands,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
State = Annotated[Path, typer.Option(help="The folder that `sfumato serve` has for --state.")]
_STATE = Path("serve-state")


@users_app.command()
def add(
    name: Name,
    role: Annotated[Role, typer.Option(help="analyst: may ask; steward: also sees the budget and its history.")],
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="Days until the token expires; without it, never.")
    ] = None,
    state: State = _STATE,
    as_json: AsJson = False,
) -> None:
    """Add a user and show a new token, this once."""
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    user, token = Users(state).add(name, role, expires=expires)
    until = "never expires" if user.expires is None else f"expires {_time(user.expires)} UTC"
    if as_json:
        show((None, {"user": _data(user), "token": token}), as_json)
        return
    screen.print(f"Added {user.name}, {user.role}. The token, which {until}, is shown this once:\n")
    screen.print(token, soft_wrap=True)
    screen.print("\nGive it to nobody else. Programs send it as: Authorization: Bearer …", soft_wrap=True)


@users_app.command("list")
def list_users(state: State = _STATE, as_json: AsJson = False) -> None:
    """List every user there ever was, with role and state; tokens are not known to anybody but their holders."""
    users, now = Users(state).seen(), datetime.now(UTC)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "role", "state", "added (UTC)", "expires (UTC)", "revoked (UTC)"):
        table.add_column(column)
    for user in users:
        times = (user.created, user.expires, user.revoked)
        table.add_row(user.name, user.role, user.state(now), *(_time(time) if time else "" for time in times))
    text = table if users else Text("Nobody. Add a user with: sfumato users add NAME --role analyst")
    show((Group(text), {"users": [_data(user) for user in users]}), as_json)


@users_app.command()
def revoke(name: Name, state: State = _STATE, as_json: AsJson = False) -> None:
    """Make a user's token worth nothing from now on, also to a server that runs."""
    user = Users(state).revoke(name)
    show((Text(f"Revoked the token of {user.name}. It is worth nothing from now on."), {"user": _data(user)}), as_json)


def _data(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "role": user.role.value,
        "state": user.state(datetime.now(UTC)),
        "made": user.created.isoformat(),
        "expires": user.expires and user.expires.isoformat(),
        "revoked": user.revoked and user.revoked.isoformat(),
    }


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
