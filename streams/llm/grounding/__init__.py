"""What a fact of a reply may rest on: who says what, whom it names, and the question that is answered."""
