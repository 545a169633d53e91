"""A synthetic federal workforce with the published shape of the real one; docs/economy-federal.md describes it."""
