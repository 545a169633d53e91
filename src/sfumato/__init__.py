"""sfumato turns confidential employer-employee data into published, protected tables."""

__version__ = "0.2.0.dev0"
