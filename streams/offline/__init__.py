"""The offline provider: a few rules in the place of a language model. It keeps what was said."""
