"""What instructions of a policy do in the extraction: their part of the prompt, and what is withheld."""
