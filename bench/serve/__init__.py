"""The server under load: the part `server`."""
