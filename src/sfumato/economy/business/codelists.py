"""The codelists of a survey of businesses."""

from typing import Final

from sfumato.economy.business.divisions import INDUSTRY
from sfumato.economy.business.occupations import OCCUPATION
from sfumato.economy.business.sizes import SIZE
from sfumato.economy.business.states import STATE
from sfumato.economy.codelists import SEX

CODELISTS: Final = (STATE, INDUSTRY, SIZE, OCCUPATION, SEX)
