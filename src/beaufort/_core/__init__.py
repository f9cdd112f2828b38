"""Foundation used by every other package; private, without public names of its own."""
