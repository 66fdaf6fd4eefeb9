import json

from tests.support.servers.canned_replies import ChatRequest, EchoReplies

QUESTION = """## Summary


## Last k Messages
user: I live in Rome.

## Recently Extracted Memories
[]

## Existing Memories
[{"id": "0", "text": "I live in Rome."}, {"id": "1", "text": "My dog is old."}]

## New Messages
user: I live in Bern.
assistant: That is good to know.
user: My cat is young.


## Observation Date
2026-11-23

# Output:"""


def test_a_prompt_for_additions_gets_one_memory_for_each_new_user_message() -> None:
    request = ChatRequest({"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": QUESTION}]})
    assert json.loads(EchoReplies()(request)) == {
        "memory": [
            {"id": "0", "text": "I live in Bern.", "attributed_to": "user", "linked_memory_ids": ["0"]},
            {"id": "1", "text": "My cat is young.", "attributed_to": "user", "linked_memory_ids": []},
        ]
    }
