"""Li and Krenzke (2020): the bottom-up hypercube, its noise, and what calibration takes out of it."""

from sfumato_lab.reproduce.li2020.reproduction import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
