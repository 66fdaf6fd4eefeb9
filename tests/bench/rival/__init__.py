"""The same measurements with mem0, a well-known memory library, beside Mnemolog."""
