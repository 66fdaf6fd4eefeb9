"""One call for many turns: which turns of a conversation go into it, what it asks, and how its reply is divided.

To read it from top to bottom: `call_sharer` asks; `call_turns` says which turns go together; `turn_questions` has what
each would ask alone; `shared_prompt` is the question; `reply_parts` gives each turn its part of the reply, and its
share of what the call took.
"""
