"""What a model may add to a search: an order of its hits, and other wordings of its question."""
