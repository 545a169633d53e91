"""A ledger and answers as version 0.1 left them: data known by the bytes of their files, questions by their order."""

from sfumato.checking import checked, stored_answers
from sfumato.engine.data_files import data_files
from sfumato.engine.memory import Memory
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release


def run_by_version_0_1(release: Release) -> dict[str, str]:
    """Charge and answer every table and cube under the names of version 0.1, which are returned."""
    with checked(release) as ready:
        data = Memory(release.store / "none.json").fingerprint(data_files(release.data))
        ledger, answers = Ledger.open(release.ledger, create=True), stored_answers(release)
        names = {}
        for part in ready.plan.distinct():
            names[part.name] = part.digest_as_laid_out(data)
            charge = part.charge(data, names[part.name])
            ledger.charge(release.account, [charge], release.about.title, budget=release.budget)
            counted = ready.count({part.name: part})[part.name]
            digest = answers.keep_file(charge.question, part.content(part.answer(counted, ready.plan.secret)))
            ledger.record_answer(release.account, charge.question, part.name, digest)
    (release.store / "memory.json").unlink()
    assert "data" not in {entry.kind for entry in ledger.history()}
    return names
