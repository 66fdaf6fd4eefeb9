"""The methods of the client that read."""
