"""A process that charges a ledger: `charging.py LEDGER NAME COUNT [CODE]` prints what became of each charge.

With a code, all its charges are about the establishments that have it.
"""

import sys
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from sfumato.privacy.account import Account, Charge, Overdraft
from sfumato.privacy.blocks import EVERYTHING, Block
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger

JOBS = Account(population="jobs", period="2025")
TENTH = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1, 10))


def main(path: str, name: str, count: str, code: str = "") -> None:
    ledger = Ledger.open(Path(path))
    block = Block.of({"ownership": [code]}, {"ownership": ""}) if code else EVERYTHING
    print("ready", flush=True)
    sys.stdin.readline()  # all start together
    for number in range(int(count)):
        question = sha256(f"{name} {number}".encode()).hexdigest()
        charge = Charge(question=question, table="t", guarantee=TENTH, data="da7a", block=block)
        try:
            [entry] = ledger.charge(JOBS, [charge], name).entries
            print(entry.identifier, flush=True)
        except Overdraft:
            print("refused", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
