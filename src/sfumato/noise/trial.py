"""Chance of a comparison: trials that can be repeated from a seed, and that nothing is ever published from."""

from dataclasses import dataclass

from sfumato.noise.randomness import Randomness, Repeatable


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One trial of a comparison, by its seed and its number; whoever knows both can subtract all that was drawn.

    Only `sfumato.report.trials` makes one, which gives back figures and no cells; a test holds that.

    >>> bool(Trial(seed=1, number=0).chance("jobs").words(1) == Trial(seed=1, number=0).chance("jobs").words(1))
    True
    >>> Trial(seed=1, number=0).key == Trial(seed=1, number=1).key
    False
    """

    seed: int
    number: int

    def chance(self, question: str) -> Randomness:
        """The draws that answer one question, the same whichever question is answered first."""
        return Repeatable(self.seed, "trial", self.number, question)

    @property
    def key(self) -> bytes:
        """A key that is made for this trial, in place of that of an office."""
        return Repeatable(self.seed, "trial key", self.number).key
