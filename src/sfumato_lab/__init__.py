"""The laboratory: synthetic economies, and published evaluations done again; sfumato never imports it."""
