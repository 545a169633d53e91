"""The catalogue for portals and search engines: DCAT-AP as JSON-LD, Turtle and RDF/XML, and data sets of schema.org."""
