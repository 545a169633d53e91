"""A process that charges a ledger: `charging.py LEDGER NAME COUNT` prints what became of each charge."""

import sys
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from sfumato.privacy.account import Account, Charge, Overdraft
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger

JOBS = Account(population="jobs", period="2025")
TENTH = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1, 10))


def main(path: str, name: str, count: str) -> None:
    ledger = Ledger.open(Path(path))
    print("ready", flush=True)
    sys.stdin.readline()  # all start together
    for number in range(int(count)):
        question = sha256(f"{name} {number}".encode()).hexdigest()
        charge = Charge(question=question, table="t", guarantee=TENTH, data="da7a")
        try:
            [entry] = ledger.charge(JOBS, [charge], name).entries
            print(entry.identifier, flush=True)
        except Overdraft:
            print("refused", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
