"""Areas of maps: read, checked, simplified, projected."""
