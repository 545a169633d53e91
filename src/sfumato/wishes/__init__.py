"""Plans from wishes: how accurate each table is to be decides which are measured, each with which epsilon."""
