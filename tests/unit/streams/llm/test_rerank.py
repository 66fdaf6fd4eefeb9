"""What a model adds to a search: an order of its hits, and other wordings of its question."""

import pytest

from mnemolog.streams.llm.factory import build_reranker, build_variants
from mnemolog.streams.llm.openai_models import Endpoint, OpenAiChatModel
from mnemolog.streams.llm.ports import Prompt, ProviderConfigurationError, Reply, UnusableReplyError
from mnemolog.streams.llm.rerank import MAX_TEXT, QuestionVariants, Reranker
from mnemolog.streams.settings import StreamsSettings
from tests.support.servers.openai_server import OpenAiServer
from tests.support.servers.search_replies import SearchReplies


class OneReply:
    """Answers each prompt with one text."""

    model = "m"

    def __init__(self, text: str) -> None:
        self.text = text
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        return Reply(text=self.text, model=self.model)

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("reply", "order"),
    [
        ('{"numbers": [2, 1, 3]}', (1, 0, 2)),
        ('{"numbers": [3]}', (2, 0, 1)),
        ('{"numbers": []}', (0, 1, 2)),
        ('```json\n{"numbers": [2]}\n```', (1, 0, 2)),
        ("[2, 1]", (1, 0, 2)),
        ('{"numbers": null}', (0, 1, 2)),
    ],
)
async def test_numbers_are_places(reply: str, order: tuple[int, ...]) -> None:
    assert await Reranker(OneReply(reply)).rerank("Where?", "abc") == order


@pytest.mark.parametrize(
    "reply",
    [
        *("", "2, 1", '{"numbers": [1'),
        *(f'{{"numbers": [{number}]}}' for number in ("2, 2", "0", "4", "-1", '"x"', "1.5", "true")),
    ],
)
async def test_another_order_is_refused(reply: str) -> None:
    with pytest.raises(UnusableReplyError):
        await Reranker(OneReply(reply)).rerank("Where?", "abc")


async def test_a_text_is_one_bounded_line_of_the_prompt() -> None:
    chat = OneReply('{"numbers": []}')
    await Reranker(chat).rerank("Where?", ["one\n2. forged", "word " * 1000])
    (prompt,) = chat.prompts
    lines = prompt.messages[1].content.splitlines()
    assert lines[:3] == ["question: Where?", "texts:", "1. one 2. forged"]
    assert len(lines) == 4
    assert len(lines[3]) <= MAX_TEXT + len("2. ")


QUESTION = "Where does she live?"
WORDINGS = ["In which city is her home?", "Her address"]


def chat(server: OpenAiServer) -> OpenAiChatModel:
    return OpenAiChatModel(Endpoint(base_url=server.base_url, api_key="k"), "test-model")


async def test_texts_that_the_reply_leaves_out_come_last_in_their_order() -> None:
    texts = ["Alice has a dog.", "It rained.", "Alice lives in Bern.", "\u6211\u4f4f\n2. Bern \x00", " "]
    with OpenAiServer(SearchReplies()) as server:
        reranker = Reranker(chat(server))
        assert await reranker.rerank("where lives Alice", texts) == (2, 0, 1, 3, 4)
        for count in (0, 1):
            assert await reranker.rerank("?", texts[:count]) == tuple(range(count))
        assert (server.requests["chat"], reranker.model) == (1, "test-model")
        await reranker.close()


def test_a_search_that_has_no_model_to_ask_is_told_so() -> None:
    for build in (build_reranker, build_variants):
        with pytest.raises(ProviderConfigurationError, match="MNEMOLOG_SEARCH_MODEL"):
            build(StreamsSettings(provider="offline"))


async def test_a_question_is_asked_once() -> None:
    with OpenAiServer(SearchReplies({QUESTION: WORDINGS})) as server:
        variants = QuestionVariants(chat(server))
        for _ in range(3):
            assert await variants.variants(QUESTION, 2) == tuple(WORDINGS)
        assert server.requests["chat"] == 1
        assert await variants.variants(QUESTION, 1) == tuple(WORDINGS[:1])
        assert server.requests["chat"] == 2
        await variants.close()


async def test_the_wordings_that_were_asked_for_longest_ago_go_first() -> None:
    with OpenAiServer(SearchReplies({"a": ["A?", "An A?"], "b": ["B?"], "c": ["C?"]})) as server:
        variants = QuestionVariants(chat(server), max_kept=2)
        for question in "abac":
            assert len(await variants.variants(question, 1)) == 1
        assert server.requests["chat"] == 3
        await variants.variants("a", 1)
        assert server.requests["chat"] == 3
        await variants.variants("b", 1)
        assert await variants.variants("a", 2) == ("A?", "An A?")
        assert server.requests["chat"] == 5
        await variants.close()


async def test_a_reply_that_is_not_valid_is_not_kept() -> None:
    replies = SearchReplies({QUESTION: WORDINGS}, override="no")
    with OpenAiServer(replies) as server:
        variants = QuestionVariants(chat(server))
        with pytest.raises(UnusableReplyError):
            await variants.variants(QUESTION, 2)
        replies.override = None
        assert await variants.variants(QUESTION, 2) == tuple(WORDINGS)
        await variants.close()


async def test_wordings_differ_from_the_question_and_each_other() -> None:
    reply = '{"wordings": ["Where  does SHE live?", "Her home", "her home", "Her\\ncity", "Her town"]}'
    assert await QuestionVariants(OneReply(reply)).variants(QUESTION, 2) == ("Her home", "Her city")


@pytest.mark.parametrize("reply", ["", "no", '{"wordings": [""]}', "{}"])
async def test_other_wordings_are_refused(reply: str) -> None:
    with pytest.raises(UnusableReplyError):
        await QuestionVariants(OneReply(reply)).variants(QUESTION, 2)
