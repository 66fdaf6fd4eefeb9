"""The sampled conflicts with mem0, with its own prompts, on the model server of a run.

Each message is an `add` of mem0, then the case's question is searched for. Appends a line a case to the output, and
goes on where a run broke off. Both sides have the same chat model, embedder and Postgres.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.streams.llm.minilm_embedder import MiniLmEmbedder
from tests.bench.rival.mem0_process import mem0_process
from tests.quality.cases import Case, Split
from tests.quality.first_hits import Found, FoundFact, questions, sampled_cases
from tests.support.databases import fresh_database, temporary_folder

DIMENSIONS: Final = 384
CASE_SECONDS: Final = 900.0
RIVAL_RESULTS: Final = Path(__file__).with_name("results") / "mem0.jsonl"


@contextmanager
def embedding_server() -> Iterator[str]:
    """MiniLM behind the interface of OpenAI: the base URL. llama-server has one model, which writes."""
    embedder = MiniLmEmbedder()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            texts = [asked] if isinstance(asked, str) else asked
            vectors = asyncio.run(embedder.embed(texts)).vectors
            data = [{"object": "embedding", "index": n, "embedding": [*one.values]} for n, one in enumerate(vectors)]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            body = json.dumps({"object": "list", "data": data, "model": embedder.model, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def read_found(path: Path = RIVAL_RESULTS) -> list[Found]:
    """The results so far."""
    return [Found.model_validate_json(line) for line in path.read_bytes().splitlines()] if path.exists() else []


async def run_rival(base_url: str, output: Path = RIVAL_RESULTS, split: Split | None = None) -> None:
    """Run the cases that `output` has not. The server needs room for 16384 tokens: mem0's prompt has 8500."""
    asked = questions()
    done = {found.id for found in read_found(output)}
    cases = [case for case in sampled_cases() if split in (None, case.split) and case.id not in done]
    with temporary_folder("mnemolog-quality-") as folder, embedding_server() as embedding_url:
        async with await EmbeddedStack.start(folder / "data", kafka=False, test=True) as stack:
            with fresh_database(stack.postgres_url) as database:
                job: dict[str, Any] = {"task": "converse", "postgres": database, "base_url": base_url}
                job |= {"embedding_url": embedding_url, "dimensions": DIMENSIONS}
                async with mem0_process(job, folder, "mem0") as mem0:
                    for case in cases:
                        # mem0 calls the speaker "User" in its memories, whatever the speaker's name.
                        question = asked[case.id].replace(case.speaker, "the user")
                        said = [{"content": one.text} for one in (*case.known, case.turn)]
                        line = json.dumps({"user_id": case.id, "messages": said, "question": question})
                        found = found_of(case, await mem0.ask(line, seconds=CASE_SECONDS))
                        with output.open("ab") as file:
                            file.write(found.model_dump_json().encode() + b"\n")
                        sys.stdout.write(f"{case.id}: {found.seconds:.0f} s, stored {found.stored}\n")
                        sys.stdout.flush()


def found_of(case: Case, answer: dict[str, Any]) -> Found:
    """mem0's answer, with the places of the messages in the place of ids."""
    origin = {memory: place for place, ids in enumerate(answer["stored"]) for memory in ids or ()}
    hits = (FoundFact(text=hit["text"], places=(origin[hit["id"]],)) for hit in answer["hits"] if hit["id"] in origin)
    return Found(
        id=case.id,
        stored=tuple(None if ids is None else len(ids) for ids in answer["stored"]),
        hits=tuple(hits),
        calls=answer["calls"],
        input_tokens=answer["prompt_tokens"],
        output_tokens=answer["reply_tokens"],
        seconds=round(answer["seconds"], 1),
    )
