"""What the command line says: each summary as text for people and as data for machines."""
