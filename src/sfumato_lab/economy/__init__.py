"""Synthetic economies with the published shape of real ones; docs/economies.md describes them."""

from sfumato_lab.economy.jobs.generate import Economy, generate
from sfumato_lab.economy.jobs.shape import Shape, measure

__all__ = ["Economy", "Shape", "generate", "measure"]
