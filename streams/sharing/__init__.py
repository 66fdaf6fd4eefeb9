"""One call for many turns: which turns of a conversation go into it, what it asks, and how its reply is divided.

To read it from top to bottom: `sharer` asks; `waiting_turns` says which turns go together; `prompt` is the question;
`division` gives each turn its part of the reply, and of what the call took.
"""
