"""What a server says when it starts: where everything is, and what those who run it should know."""

from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction

from sfumato.live import FormalLive
from sfumato.serve.catalogue import Catalogue
from sfumato.serve.formats.json_stat import BASE, LANGUAGE
from sfumato.serve.live.desk import Desk
from sfumato.serve.page.navigation import LIVE, STEWARD
from sfumato.serve.page.writing import figure
from sfumato.serve.sdmx.routes import BASE as SDMX
from sfumato.serve.settings import Settings
from sfumato.users import Users

NEARLY = Fraction(1, 10)
"""The share of a budget that is left when those who run the server are told."""


def addresses(catalogue: Catalogue, address: str, desk: Desk | None) -> Iterator[str]:
    """Lines that say what can be opened where; the first has the address itself."""
    first = next(iter(catalogue))
    yield f"Serving {len(catalogue)} tables at {address} — stop with Ctrl+C."
    yield f"  page for people  {address}/"
    yield f'  PxWebApi 2       {address}{BASE}/tables   Python: PxApi("{address}{BASE}")'
    old = f"{address}/api/v1/{LANGUAGE}"
    yield f'  PxWebApi 1       {old}   R: pxweb_interactive("{old}")'
    yield f"  SDMX 2.1         {address}{SDMX}/dataflow"
    yield f"  Excel            {address}{BASE}/tables/{first.id}/data?outputFormat=xlsx"
    if desk is not None:
        yield f"  ad-hoc tables    {address}{LIVE}   with a token"
        yield f"  steward          {address}{STEWARD}   with the token of a steward"


def warnings(settings: Settings, desk: Desk | None, *, budget: str) -> Iterator[str]:
    """What is probably not as it was meant; `budget` is what was typed for ad-hoc questions."""
    formal = desk.live if desk is not None and isinstance(desk.live, FormalLive) else None
    if budget and formal is None:
        reason = "no release is asked: add --live" if desk is None else "questions about records cost nothing"
        yield f"--budget-epsilon has no effect: {reason}."
    if desk is not None and not any(user.active(datetime.now(UTC)) for user in Users(settings.state).all()):
        yield f"Nobody can ask yet: sfumato users add NAME --role analyst --state {settings.state}"
    if formal is not None:
        yield from _spent(formal)


def _spent(live: FormalLive) -> Iterator[str]:
    """What is left, where that is little or less than the server may spend."""
    left, most = live.left().remaining_epsilon, live.most.epsilon
    words = f"ε = {figure(float(max(left, Fraction(0))), 6)} of {figure(float(most), 6)}"
    if left <= 0:
        yield f"The budget for ad-hoc questions is spent ({words} is left): only what was asked before is answered."
    elif left < most * NEARLY:
        yield f"The budget for ad-hoc questions is nearly spent: {words} is left."
    account = live.release.account
    if live.ledger.has_budget(account):
        whole = live.ledger.balance(account).remaining_epsilon
        if 0 < whole < most:
            yield (
                f"The whole budget of {account} has ε = {figure(float(whole), 6)} left, which is less than the "
                f"{figure(float(most), 6)} that ad-hoc questions may cost."
            )
