"""A chat that remembers, with any OpenAI-compatible server: a line of stdin is a message, a line of stdout the answer.

OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=none python examples/chat.py alice MODEL
"""

import sys

from openai import OpenAI

from mnemolog import MemoryClient

user_id, model = sys.argv[1:]
with MemoryClient() as client, OpenAI() as server:
    memory = client.scope(user_id=user_id)
    for line in filter(str.strip, sys.stdin):
        context = memory.context(line)
        asked = {"role": "user", "content": line.strip()}
        reply = server.chat.completions.create(model=model, messages=[*context.messages, asked])
        answer = reply.choices[0].message.content or ""
        print(answer, flush=True)
        memory.add([asked, {"role": "assistant", "content": answer}], recalled=context.recalled)
