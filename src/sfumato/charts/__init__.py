"""Charts as SVG, for the pages of the server, the confidential report and the reproductions."""
