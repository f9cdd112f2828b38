"""Drop-in replacements for modules of other packages."""
