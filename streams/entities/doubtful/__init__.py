"""The names that the rules leave in doubt: what a model is asked about them, and what its answers make of them."""
