"""Twelve requirements of a job: their categories, and the traits of an occupation that decide between them.

Ten of them (all but education and noise) have 5, 4, 3, 3, 3, 2, 2, 2, 2 and 2 categories: the 17,280 cells of the
cube in Li and Krenzke (2020).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato_lab.economy.jobs.codelists import Codelist
from sfumato_lab.economy.requirements.occupations import TRAITS


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One requirement: where the latent value falls between the cuts is the category."""

    codelist: Codelist
    loadings: tuple[float, ...]
    """What the latent value has of every trait, in the order of TRAITS."""
    cuts: tuple[float, ...]
    """Ascending, one fewer than there are categories."""

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.codelist.name


_NO_YES = (("no", "Not required"), ("yes", "Required"))


def _variable(
    name: str, label: str, entries: tuple[tuple[str, str], ...], *, cuts: tuple[float, ...], **loadings: float
) -> Variable:
    """A variable from its categories, with the loadings that are not zero."""
    return Variable(
        codelist=Codelist(name=name, label=label, entries=entries),
        loadings=tuple(loadings.get(trait, 0.0) for trait in TRAITS),
        cuts=cuts,
    )


STRENGTH: Final = _variable(
    "strength",
    "Strength level",
    (
        ("sedentary", "Sedentary work"),
        ("light", "Light work"),
        ("medium", "Medium work"),
        ("heavy", "Heavy work"),
        ("very-heavy", "Very heavy work"),
    ),
    cuts=(-0.8, 0.4, 1.3, 2.1),
    strain=1.0,
)
EDUCATION: Final = _variable(
    "education",
    "Least education",
    (
        ("none", "No minimum"),
        ("high-school", "High school diploma"),
        ("associate", "Associate or vocational degree"),
        ("bachelor", "Bachelor's degree"),
        ("postgraduate", "Master's, professional or doctoral degree"),
    ),
    cuts=(-0.9, 0.5, 0.85, 1.8),
    schooling=1.0,
)
REACHING: Final = _variable(
    "reaching",
    "Reaching",
    (("never", "Never"), ("seldom", "Seldom"), ("occasional", "Occasionally"), ("frequent", "Frequently")),
    cuts=(-1.2, -0.3, 0.8),
    strain=0.9,
    desk=-0.2,
)
NOISE: Final = _variable(
    "noise",
    "Noise",
    (("quiet", "Quiet"), ("moderate", "Moderate"), ("loud", "Loud"), ("very-loud", "Very loud")),
    cuts=(-0.7, 0.7, 1.9),
    strain=0.3,
    site=0.8,
)
SUPERVISION: Final = _variable(
    "supervision",
    "Supervising others",
    (("none", "Nobody"), ("some", "Some of the time"), ("lead", "Leads a group")),
    cuts=(0.5, 1.3),
    lead=1.0,
)
PACE: Final = _variable(
    "pace",
    "Pace of work",
    (("self", "Set by the worker"), ("varying", "Varying"), ("set", "Set by machines or others")),
    cuts=(-0.5, 0.7),
    strain=0.5,
    schooling=-0.5,
)
KEYBOARDING: Final = _variable(
    "keyboarding",
    "Keyboarding",
    (("seldom", "Never or seldom"), ("occasional", "Occasionally"), ("frequent", "Frequently")),
    cuts=(-0.6, 1.0),
    desk=1.0,
)
CLIMBING: Final = _variable(
    "climbing", "Climbing ladders or structures", _NO_YES, cuts=(1.3,), strain=0.4, site=0.7, desk=-0.1
)
DRIVING: Final = _variable("driving", "Driving a vehicle", _NO_YES, cuts=(0.6,), driving=1.0)
HEIGHTS: Final = _variable("heights", "Work at heights", _NO_YES, cuts=(1.8,), site=1.0)
TELEWORK: Final = _variable(
    "telework", "Telework", (("no", "Not possible"), ("yes", "Possible")), cuts=(1.7,), desk=0.8, schooling=0.4
)
CREDENTIALS: Final = _variable(
    "credentials", "Licence or certificate", _NO_YES, cuts=(0.9,), licence=0.9, schooling=0.2
)

VARIABLES: Final = (
    STRENGTH,
    EDUCATION,
    REACHING,
    NOISE,
    SUPERVISION,
    PACE,
    KEYBOARDING,
    CLIMBING,
    DRIVING,
    HEIGHTS,
    TELEWORK,
    CREDENTIALS,
)


def loadings() -> NDArray[np.float64]:
    """What every latent value has of every trait: a row per variable."""
    return np.array([variable.loadings for variable in VARIABLES])
