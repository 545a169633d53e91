"""A process that charges periods in turn: `charging_periods.py LEDGER NAME COUNT PERIOD…` prints what became of each.

Each charge is a tenth, about establishments of one owner or of all, by turns.
"""

import sys
from fractions import Fraction
from hashlib import sha256
from itertools import cycle
from pathlib import Path

from sfumato.privacy.account import Account, Charge, Overdraft
from sfumato.privacy.blocks import EVERYTHING, Block
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.windows import Window

TENTH, ONE, TWO = (
    EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=epsilon)
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(2))
)
WINDOW = Window(periods=3, length="quarter", most=TWO)
"""Two for any three quarters, each of which may spend one."""
BLOCKS = (EVERYTHING, *(Block.of({"ownership": [code]}, {"ownership": ""}) for code in ("private", "state")))


def main(path: str, name: str, count: str, *periods: str) -> None:
    ledger = Ledger.open(Path(path))
    print("ready", flush=True)
    sys.stdin.readline()  # all start together
    for number, period, block in zip(range(int(count)), cycle(periods), cycle(BLOCKS), strict=False):
        digest = sha256(f"{name} {number}".encode()).hexdigest()
        charge = Charge(question=digest, table="t", guarantee=TENTH, data=sha256(period.encode()).hexdigest())
        about = Charge(**{**vars(charge), "block": block})
        try:
            account = Account(population="jobs", period=period)
            [entry] = ledger.charge(account, [about], name, budget=ONE, window=WINDOW).entries
            print(entry.identifier, flush=True)
        except Overdraft:
            print("refused", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
