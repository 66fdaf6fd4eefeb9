"""What models cost: the price table, and the money for tokens."""
