"""What one source tells of entities: whom its names mean, and whom each of its facts links."""
