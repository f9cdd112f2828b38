"""Drop-in replacements for modules of other packages, and callbacks for their training loops."""
