"""Searches: what is asked, the one statement that answers it, and what it found."""
