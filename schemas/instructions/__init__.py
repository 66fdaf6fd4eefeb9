"""What an operator tells the extraction."""
