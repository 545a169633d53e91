"""Synthetic economies with the published shape of real ones; docs/economy.md describes them."""

from sfumato.economy.generate import Economy, generate
from sfumato.economy.shape import Shape, measure

__all__ = ["Economy", "Shape", "generate", "measure"]
