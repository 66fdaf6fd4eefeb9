"""The recorded LoCoMo dialogues through the pipeline: their entities, their calls, and whom their facts are about."""
