"""Modules to import in place of other packages: their names and signatures, our backend."""
