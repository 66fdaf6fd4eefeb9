"""One call for the conflicts of many turns: what the turns that wait will ask, as far as that can be told ahead.

To read it from top to bottom: `conflict_sharer` asks; `waiting_turns` finds what waiting turns will ask;
`predicted_facts` has what the turns before them are expected to add; `conflict_prompt` is the question, and divides the
reply.
"""
