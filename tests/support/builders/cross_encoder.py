"""A cross-encoder in a folder, as real ones lie there: its score is how many words question and text have in common.

The model is written byte by byte, as protocol buffers of the ONNX format: the package that builds such files is large.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_INT64, _FLOAT = 7, 1
_AS_INT = 2
_SPECIAL: Final = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}


def write_cross_encoder(folder: Path, words: str) -> Path:
    """A folder with a model that knows these words."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model())
    vocabulary = _SPECIAL | {word: len(_SPECIAL) + at for at, word in enumerate(dict.fromkeys(words.lower().split()))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 -- a token of text
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _model() -> bytes:
    """Of each pair the number of places (one in the question, one in the text) with equal tokens, but unknown ones."""
    nodes = [
        _node("Sub", ("attention_mask", "token_type_ids"), "asked_padded"),
        _node("Greater", ("input_ids", "one"), "is_known"),
        _node("Cast", ("is_known",), "known", _int_attribute("to", _INT64)),
        _node("Mul", ("asked_padded", "known"), "asked"),
        _node("Mul", ("token_type_ids", "known"), "told"),
        _node("Unsqueeze", ("asked", "second"), "asked_rows"),
        _node("Unsqueeze", ("told", "first"), "told_columns"),
        _node("Mul", ("asked_rows", "told_columns"), "pairs"),
        _node("Unsqueeze", ("input_ids", "second"), "rows"),
        _node("Unsqueeze", ("input_ids", "first"), "columns"),
        _node("Equal", ("rows", "columns"), "is_equal"),
        _node("Cast", ("is_equal",), "equal", _int_attribute("to", _INT64)),
        _node("Mul", ("pairs", "equal"), "common"),
        _node("Cast", ("common",), "numbers", _int_attribute("to", _FLOAT)),
        _node("ReduceSum", ("numbers", "both"), "sums", _int_attribute("keepdims", 0)),
        _node("Unsqueeze", ("sums", "first"), "scores"),
    ]
    constants = {"one": [1], "first": [1], "second": [2], "both": [1, 2]}
    graph = b"".join(_field(1, node) for node in nodes) + _text(2, "common words")
    graph += b"".join(_field(5, _tensor(name, values)) for name, values in constants.items())
    graph += b"".join(_field(11, _value(name, _INT64, ("pair", "token"))) for name in INPUTS)
    graph += _field(12, _value("scores", _FLOAT, ("pair", "score")))
    return _number(1, 8) + _field(7, graph) + _field(8, _text(1, "") + _number(2, 13))


def _node(operator: str, inputs: Sequence[str], output: str, attribute: bytes = b"") -> bytes:
    parts = [_text(1, name) for name in inputs] + [_text(2, output), _text(4, operator)]
    return b"".join(parts) + (_field(5, attribute) if attribute else b"")


def _int_attribute(name: str, value: int) -> bytes:
    return _text(1, name) + _number(3, value) + _number(20, _AS_INT)


def _tensor(name: str, values: Sequence[int]) -> bytes:
    numbers = b"".join(_number(7, value) for value in values)
    return _number(1, len(values)) + _number(2, _INT64) + numbers + _text(8, name)


def _value(name: str, kind: int, dimensions: Sequence[str]) -> bytes:
    shape = b"".join(_field(1, _text(2, dimension)) for dimension in dimensions)
    return _text(1, name) + _field(2, _field(1, _number(1, kind) + _field(2, shape)))


def _text(place: int, text: str) -> bytes:
    return _field(place, text.encode())


def _field(place: int, content: bytes) -> bytes:
    return _varint(place << 3 | 2) + _varint(len(content)) + content


def _number(place: int, value: int) -> bytes:
    return _varint(place << 3) + _varint(value)


def _varint(value: int) -> bytes:
    rest, low = value >> 7, value & 0x7F
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])
