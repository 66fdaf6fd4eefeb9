"""Whether two names that are not equal are one: by how they are spelled."""
