"""Schmutte (2020): statistics from small samples, their noise, and what they cost a person."""

from sfumato_lab.reproduce.schmutte2020.reproduction import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
