"""A server that is killed while many ask: no charge and no answer is lost, and the budget is never exceeded."""

import random
from fractions import Fraction
from pathlib import Path
from threading import Event, Timer

import pytest

from sfumato.checking import stored_answers
from sfumato.live.charged import LIVE
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.jobs.generate import Economy
from tests.serve.killing import Asker
from tests.serve.live_serving import LiveServer, of_jobs, users
from tests.serve.running import serving

BUDGET = Fraction(12)
KILLS = 3
CLIENTS = 8
SIGKILL_WITHIN = 0.5
"""Seconds after the first answer within which the server is killed, at random."""
PATIENCE = 120


@pytest.mark.slow
def test_a_killed_server_loses_no_charge_and_no_answer(economy: Economy, tmp_path: Path) -> None:
    file = of_jobs(economy.folder, tmp_path / "economy", budget=20.0)
    release = load(file)
    bundle = run(release).bundle
    state = tmp_path / "state"
    analyst, steward = users(state)
    given: dict[str, bytes] = {}
    arguments = (bundle, "--state", state, "--live", file, "--rate", "0", "--budget-epsilon", str(BUDGET))
    for _ in range(KILLS):
        with serving(*arguments) as server:
            asked = LiveServer(server=server, release=file, analyst=analyst, steward=steward)
            answered = Event()
            clients = [Asker(asked, ("place", "industry", "ownership"), answered) for _ in range(CLIENTS)]
            threads = [client.begin() for client in clients]
            answered.wait(PATIENCE)
            killer = Timer(random.uniform(0, SIGKILL_WITHIN), server.process.kill)
            killer.start()
            for thread in threads:
                thread.join()
            killer.join()
            server.process.wait()
        assert not [status for client in clients for status in client.others]
        given |= {repr(question): answer for client in clients for question, answer in client.answers}

    ledger = Ledger.open(release.ledger)
    ledger.verify()
    history = ledger.history(release.account)
    charged = [entry for entry in history if entry.kind == "charge" and entry.release == LIVE]
    spent = sum((entry.guarantee.epsilon for entry in charged), Fraction(0))
    assert given, "somebody got an answer before the server was killed"
    assert len(given) <= len(charged)
    assert spent <= BUDGET
    assert len({entry.question for entry in charged}) == len(charged), "nothing was charged twice"
    recorded = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
    assert len(given) <= sum(entry.question in recorded for entry in charged)
    for question, digest in recorded.items():
        stored_answers(release).read_file(question, digest)  # whole, and with the digest of the ledger

    with serving(*arguments) as server:
        again = LiveServer(server=server, release=file, analyst=analyst, steward=steward)
        for question, answer in given.items():
            assert again.ask(eval(question), outputFormat="csv").content == answer
    after = Ledger.open(release.ledger).history(release.account)
    assert [entry for entry in after if entry.kind == "charge" and entry.release == LIVE] == charged
