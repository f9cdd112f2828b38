"""Foundation of all other packages: arrays, errors, files, registries, text, validation; private."""
