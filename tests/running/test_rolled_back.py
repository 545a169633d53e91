"""A ledger that has forgotten what was published is refused, before anything is charged, drawn or deleted."""

import json
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.checking import check, checked
from sfumato.errors import BudgetError, LedgerError
from sfumato.live.charged import open_charged
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release, load
from sfumato.running import run
from sfumato.safeguards import record_lost
from tests.release.test_release_file import GOOD, written

DRAWS = 10


@pytest.fixture
def release(tiny: Path) -> Release:
    return load(written(tiny, GOOD))


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but locks."""
    found = (path for path in folder.rglob("*") if path.is_file() and "lock" not in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def copied(release: Release, step: str) -> Callable[[str], None]:
    """Copy the ledger when a run begins a step, as a backup at that moment would."""
    return lambda begun: shutil.copy(release.ledger, release.folder / "older") if begun == step else None


def published(release: Release) -> Release:
    """The same release, published, and beside its ledger an older one with the budget alone."""
    Ledger.open(release.ledger, create=True).set_budget(release.account, release.budget or _BUDGET)
    shutil.copy(release.ledger, release.folder / "older")
    run(release)
    return release


_BUDGET = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(4))


def leave_everything(_: Release) -> None:
    pass


def remove_the_mark(release: Release) -> None:
    """A store as version 0.1 left it."""
    (release.store / "mark.json").unlink()


def leave_the_mark(release: Release) -> None:
    shutil.rmtree(release.store / "answers")
    shutil.rmtree(release.bundle)


def leave_the_answers(release: Release) -> None:
    remove_the_mark(release)
    shutil.rmtree(release.bundle)


def leave_the_bundle(release: Release) -> None:
    shutil.rmtree(release.store)


LEFT = [leave_everything, remove_the_mark, leave_the_mark, leave_the_answers, leave_the_bundle]


@pytest.mark.parametrize("leave", LEFT)
def test_a_ledger_put_back_again_and_again_draws_nothing_again(
    release: Release, leave: Callable[[Release], None]
) -> None:
    leave(published(release))
    older = (release.folder / "older").read_bytes()
    bundle, store = files(release.bundle), files(release.store)
    for _ in range(1, DRAWS):
        release.ledger.write_bytes(older)
        with pytest.raises(LedgerError, match="restore the newest copy of the ledger"):
            run(release)
        assert release.ledger.read_bytes() == older, "nothing is charged"
        assert files(release.bundle) == bundle
        assert {name: content for name, content in files(release.store).items() if "memory" not in name} == {
            name: content for name, content in store.items() if "memory" not in name
        }
    with pytest.raises(LedgerError, match="restore the newest copy of the ledger"):
        check(release)


@pytest.mark.parametrize("leave", LEFT)
def test_a_ledger_that_is_gone_is_not_replaced_by_a_new_one(release: Release, leave: Callable[[Release], None]) -> None:
    leave(published(release))
    release.ledger.unlink()
    for attempt in (run, check):
        with pytest.raises(LedgerError, match="the budget would start anew"):
            attempt(release)
    assert not release.ledger.exists()
    if leave is not leave_the_bundle:  # a budget has no bundle
        with pytest.raises(LedgerError, match="the budget would start anew"):
            Ledger.open(release.ledger, create=True)


def test_an_answer_that_the_ledger_forgot_is_given_again_and_not_drawn(release: Release) -> None:
    run(release, progress=copied(release, "protect"))
    remove_the_mark(release)
    bundle, answers = files(release.bundle), files(release.store / "answers")
    shutil.copy(release.folder / "older", release.ledger)
    again = run(release)
    assert (again.charged, again.finished) == ((), ("by_place", "by_industry"))
    assert files(release.bundle) == bundle
    assert files(release.store / "answers") == answers


def test_a_ledger_from_between_charge_and_answer_is_noticed(release: Release) -> None:
    run(release, progress=copied(release, "protect"))
    shutil.rmtree(release.store / "answers")
    shutil.copy(release.folder / "older", release.ledger)
    with pytest.raises(LedgerError, match="restore the newest copy"):
        run(release)


def test_a_ledger_from_between_charge_and_answer_never_draws_beside_two_answers(release: Release) -> None:
    run(release, progress=copied(release, "protect"))
    remove_the_mark(release)
    one, other = sorted((release.store / "answers").iterdir())
    shutil.copy(other, one.with_name(one.name.split(".")[0] + "." + other.name.split(".", 1)[1]))
    shutil.copy(release.folder / "older", release.ledger)
    with pytest.raises(LedgerError, match="not those it recorded"):
        run(release)


def test_a_draft_without_a_charge_shows_an_older_ledger(release: Release) -> None:
    Ledger.open(release.ledger, create=True).set_budget(release.account, _BUDGET)
    (release.store / "answers" / f".{'ab' * 32}.draft").mkdir(parents=True)
    with pytest.raises(LedgerError, match="1 stored answers to questions that it has no charge for"):
        run(release)


def test_a_store_without_a_mark_works_and_gets_one(release: Release) -> None:
    first = files(run(release).bundle)
    remove_the_mark(release)
    assert run(release).charged == ()
    assert files(release.bundle) == first
    newest = Ledger.open(release.ledger).history()[-1]
    assert json.loads((release.store / "mark.json").read_text()) == {
        "sequence": newest.sequence,
        "hash": newest.hash,
    }


def test_a_ledger_moves_to_another_machine_with_its_store(
    release: Release, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = files(run(release).bundle)
    moved = Path(shutil.copytree(release.folder, tmp_path_factory.mktemp("machine") / "moved"))
    again = run(load(moved / "release.toml"))
    assert again.charged == ()
    assert files(again.bundle) == first


def test_two_releases_share_a_ledger_and_each_is_refused_when_it_is_older(release: Release) -> None:
    text = GOOD.replace('period = "2025"', 'period = "2025"\nbundle = "other"').replace(
        "epsilon = 2.0", "epsilon = 1.5"
    )
    file = release.folder / "other.toml"
    file.write_text(text, encoding="utf-8")
    run(release, progress=copied(release, "publish"))
    run(load(file))
    run(release)
    shutil.copy(release.folder / "older", release.ledger)
    for one in (release, load(file)):
        with pytest.raises(LedgerError, match="restore the newest copy"):
            run(one)


def test_live_questions_stop_when_the_ledger_is_put_back(release: Release) -> None:
    published(release)
    with open_charged(release, epsilon=Fraction(1)) as live:
        shutil.copy(release.folder / "older", release.ledger)
        statistic = live.plan(by=("place",), epsilon=Fraction(1, 2))
        with pytest.raises(LedgerError, match="restore the newest copy"):
            live.answer(statistic)
    with pytest.raises(LedgerError, match="restore the newest copy"), open_charged(release, epsilon=Fraction(1)):
        pass


def test_what_was_lost_is_recorded_and_the_same_release_is_then_charged_anew(release: Release) -> None:
    old = read_manifest(published(release).bundle)["charges"]
    answers = files(release.store / "answers")
    release.ledger.unlink()
    lost = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(4))
    done = record_lost(release.ledger, release.account, lost, "the disk broke", [release.bundle])
    assert done.set_aside == len(answers)
    assert files(done.folder) == answers, "no answer is deleted"
    with pytest.raises(BudgetError, match="at most what remains: epsilon = 0"):
        run(release)
    file = written(release.folder, GOOD.replace("epsilon = 4.0", "epsilon = 8.0"))
    done.ledger.set_budget(release.account, replace(_BUDGET, epsilon=Fraction(8)))
    again = run(load(file))
    assert set(again.charged) == set(old)
    assert again.balance is not None
    assert again.balance.spent_epsilon == lost.epsilon + 2 + Fraction(1, 3)
    assert set(read_manifest(again.bundle)["charges"].values()).isdisjoint(old.values())


def test_less_than_the_bundles_cost_is_not_recorded(release: Release) -> None:
    published(release)
    release.ledger.unlink()
    lost = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1))
    with pytest.raises(BudgetError, match="at least what the bundles cost and the ledger lacks: epsilon = 7/3"):
        record_lost(release.ledger, release.account, lost, "the disk broke", [release.bundle])
    with pytest.raises(LedgerError, match="why charges have to be recorded again"):
        record_lost(release.ledger, release.account, lost, " ")
    assert not release.ledger.exists()


def test_charges_that_an_older_ledger_still_has_need_not_be_recorded_again(release: Release) -> None:
    run(replace_tables(release, 1))
    shutil.copy(release.ledger, release.folder / "older")
    spent = run(release).balance
    assert spent is not None
    shutil.copy(release.folder / "older", release.ledger)
    kept = Ledger.open(release.ledger, lost=True).balance(release.account).spent_epsilon
    missing = spent.spent_epsilon - kept
    assert 0 < missing < spent.spent_epsilon
    with pytest.raises(BudgetError, match="the ledger lacks"):
        record_lost(release.ledger, release.account, _of(missing / 2), "the disk broke", [release.bundle])
    record_lost(release.ledger, release.account, _of(missing), "the disk broke", [release.bundle])
    assert Ledger.open(release.ledger).balance(release.account).spent_epsilon == spent.spent_epsilon


def test_after_a_lost_ledger_nobody_is_told_that_the_data_changed(release: Release) -> None:
    published(release)
    release.ledger.unlink()
    record_lost(release.ledger, release.account, _BUDGET, "the disk broke", [release.bundle])
    with checked(release) as ready:
        assert ready.identity.changes(ready.plan, release.account) == ()


def replace_tables(release: Release, most: int) -> Release:
    """The same release with its first tables only."""
    return release.model_copy(update={"tables": release.tables[:most]})


def _of(epsilon: Fraction) -> EmployerEmployee:
    return EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=epsilon)


def test_a_lost_ledger_without_its_bundle_stays_refused(release: Release) -> None:
    published(release)
    release.ledger.unlink()
    record_lost(release.ledger, release.account, _BUDGET, "the disk broke")
    with pytest.raises(LedgerError, match="named by the bundle"):
        run(release)


def test_the_store_is_for_its_owner_alone_also_one_that_was_open_before(release: Release) -> None:
    private = (release.store, release.store / "answers")
    run(release)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in private] == [0o700, 0o700]
    for folder in private:
        folder.chmod(0o755)
    run(load(written(release.folder, GOOD.replace("epsilon = 2.0", "epsilon = 1.5"))))
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in private] == [0o700, 0o700]
