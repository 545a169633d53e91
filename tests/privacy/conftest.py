"""A fresh ledger, and short ways to say what is charged to it."""

from pathlib import Path

import pytest

from sfumato.privacy.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.open(path, create=True)
