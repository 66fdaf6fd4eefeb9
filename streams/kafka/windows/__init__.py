"""What a window remembers, and how it reads again what it does not."""
