"""The codes of every attribute of the workforce, in the order its files and its release list them."""

from typing import Final

from sfumato.economy.codelists import EDUCATION, SEX, Codelist
from sfumato.economy.federal.agencies import AGENCY, INDUSTRY
from sfumato.economy.federal.states import STATE

AGE: Final = Codelist(
    name="age",
    label="Age",
    entries=(
        ("18-24", "18 to 24 years"),
        ("25-34", "25 to 34 years"),
        ("35-44", "35 to 44 years"),
        ("45-54", "45 to 54 years"),
        ("55-64", "55 to 64 years"),
        ("65-99", "65 years and older"),
    ),
)

CODELISTS: Final = (STATE, AGENCY, INDUSTRY, SEX, AGE, EDUCATION)
