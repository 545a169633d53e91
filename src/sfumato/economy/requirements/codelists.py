"""The codelists of a survey of requirements."""

from typing import Final

from sfumato.economy.industries import INDUSTRY
from sfumato.economy.requirements.occupations import MAJOR_GROUP, OCCUPATION
from sfumato.economy.requirements.sizes import SIZE
from sfumato.economy.requirements.strata import OWNERSHIP, STRATUM
from sfumato.economy.requirements.variables import VARIABLES

CODELISTS: Final = (
    OCCUPATION,
    MAJOR_GROUP,
    INDUSTRY,
    OWNERSHIP,
    SIZE,
    STRATUM,
    *(variable.codelist for variable in VARIABLES),
)
