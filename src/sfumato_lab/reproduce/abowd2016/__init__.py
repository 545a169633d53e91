"""Abowd and McKinney (2016): noise infusion for graphs of employers, done again; docs/reproduce.md describes it."""
