"""What all interfaces of the server share: one model of a table, and how requests are met."""
