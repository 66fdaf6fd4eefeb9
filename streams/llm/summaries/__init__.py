"""What a model is asked for a summary of an entity, which replies are one, and one without a model."""
