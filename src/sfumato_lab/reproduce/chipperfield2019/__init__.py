"""Chipperfield and others (2019): the keyed perturbation of business totals, and which published figures hold."""

from sfumato_lab.reproduce.chipperfield2019.reproduction import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
