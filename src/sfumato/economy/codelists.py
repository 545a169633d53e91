"""The codes of every attribute but place and industry, with their labels, in the order tables show them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Codelist:
    """The codes of one attribute with their labels, in order."""

    name: str
    label: str
    entries: tuple[tuple[str, str], ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes alone."""
        return tuple(code for code, _ in self.entries)

    def __len__(self) -> int:
        return len(self.entries)


OWNERSHIP = Codelist(
    name="ownership",
    label="Ownership",
    entries=(
        ("private", "Private"),
        ("federal", "Federal government"),
        ("state", "State government"),
        ("local", "Local government"),
    ),
)

# The strata in which the published evaluation reports its errors.
PLACE_SIZE = Codelist(
    name="place_size",
    label="Population of the place",
    entries=(
        ("0-100", "Fewer than 100 inhabitants"),
        ("100-10k", "100 to 9,999 inhabitants"),
        ("10k-100k", "10,000 to 99,999 inhabitants"),
        ("100k+", "100,000 inhabitants or more"),
    ),
)

AGE = Codelist(
    name="age",
    label="Age",
    entries=(
        ("14-18", "14 to 18 years"),
        ("19-21", "19 to 21 years"),
        ("22-24", "22 to 24 years"),
        ("25-34", "25 to 34 years"),
        ("35-44", "35 to 44 years"),
        ("45-54", "45 to 54 years"),
        ("55-64", "55 to 64 years"),
        ("65-99", "65 years and older"),
    ),
)

SEX = Codelist(name="sex", label="Sex", entries=(("F", "Female"), ("M", "Male")))

RACE = Codelist(
    name="race",
    label="Race",
    entries=(
        ("white", "White alone"),
        ("black", "Black or African American alone"),
        ("indigenous", "American Indian or Alaska Native alone"),
        ("asian", "Asian alone"),
        ("pacific", "Native Hawaiian or other Pacific Islander alone"),
        ("several", "Two or more races"),
    ),
)

ETHNICITY = Codelist(
    name="ethnicity",
    label="Ethnicity",
    entries=(("hispanic", "Hispanic or Latino"), ("other", "Not Hispanic or Latino")),
)

EDUCATION = Codelist(
    name="education",
    label="Education",
    entries=(
        ("no-diploma", "Less than high school"),
        ("high-school", "High school or equivalent"),
        ("some-college", "Some college or associate degree"),
        ("college", "Bachelor's degree or higher"),
    ),
)
