"""How well a search finds what was said: recorded dialogues with questions and the messages that answer them."""
