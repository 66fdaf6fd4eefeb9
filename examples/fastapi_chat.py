"""A chat over HTTP that remembers each user, with any OpenAI-compatible server.

OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=none MODEL=name uvicorn --app-dir examples fastapi_chat:app
curl -H 'content-type: application/json' -d '{"text": "I live in Bern."}' 127.0.0.1:8000/users/alice/chat

Take the user from your login instead of the path before anybody else can reach it.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from openai import AsyncOpenAI
from pydantic import BaseModel

from mnemolog import AsyncMemoryClient


class Said(BaseModel):
    text: str


@asynccontextmanager
async def clients(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncMemoryClient() as app.state.memory, AsyncOpenAI() as app.state.server:
        yield


app = FastAPI(lifespan=clients)


@app.post("/users/{user_id}/chat")
async def chat(user_id: str, said: Said, request: Request) -> str:
    memory = request.app.state.memory.scope(user_id=user_id)
    context = await memory.context(said.text)
    asked = {"role": "user", "content": said.text}
    reply = await request.app.state.server.chat.completions.create(
        model=os.environ["MODEL"], messages=[*context.messages, asked]
    )
    answer = reply.choices[0].message.content or ""
    await memory.add([asked, {"role": "assistant", "content": answer}], recalled=context.recalled)
    return answer
