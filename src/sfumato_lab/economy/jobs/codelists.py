"""Industries and the codes of every attribute with their labels, and names of places that exist nowhere."""

from dataclasses import dataclass
from itertools import product

from sfumato_lab.economy.frame import Purpose, stream

# Names of places that exist nowhere.


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _words("""
    Alder Amber Apple Ash Barley Beech Bell Birch Bramble Briar Brindle Bry Cinder Clover Copper Cran
    Dapple Dove Elder Ember Fair Fal Fen Fern Finch Flint Fox Gander Glen Gold Gorse Hazel Heather Heron
    Hollin Honey Iron Ivy Juniper Kestrel Lark Laurel Linden Maple Marl Marsh Meadow Merry Mill Moss
    Nettle Oak Old Orchard Otter Owl Pebble Pine Plum Quill Raven Reed River Robin Rose Rowan Rush Sage
    Sand Silver Sorrel Spar Star Stone Summer Swan Tansy Teasel Thistle Thorn Violet Walnut Wester Wheat
    Willow Winter Wren Yarrow
""")
_LAST = _words("""
    bank beck bourne bridge brook bury by cliff combe cote cross dale dell den fall field ford gate glade
    grove ham haven hill holm hurst lake land leigh lock mead mere mill mont moor mouth pool port ridge
    shaw side stead stoke thorpe ton vale view water well wick wold wood worth
""")
_BEFORE = ("North", "South", "East", "West", "Upper", "Lower", "New", "Great", "Little", "High")

_PLAIN = tuple(first + last for first, last in product(_FIRST, _LAST) if first.lower() != last)

MOST = len(_PLAIN) * (1 + len(_BEFORE))
"""The number of names there are."""


def place_names(count: int, *, seed: int) -> list[str]:
    """Distinct names, the plain ones first: "Alderbrook" comes before any "North Alderbrook"."""
    shuffled = [_PLAIN[i] for i in stream(seed, Purpose.NAMES).permutation(len(_PLAIN))]
    if count <= len(shuffled):
        return shuffled[:count]
    qualified = [f"{before} {name}" for name, before in product(shuffled, _BEFORE)]
    return shuffled + qualified[: count - len(shuffled)]


# The codes of every attribute but place and industry, with their labels, in the order tables show them.


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
