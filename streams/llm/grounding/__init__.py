"""The reply to an extraction, and what a fact of it may rest on: who says what, whom it names, and what is answered."""
