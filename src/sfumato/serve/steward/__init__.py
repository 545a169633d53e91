"""The steward's page: budgets, history, what parameters would do, and who asks what."""
