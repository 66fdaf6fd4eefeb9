"""Takes recorded dialogues through the pipeline, each as one user's, message by message."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.quality.recorded.speaker_check import SpeakerFigures, check_speakers
from tests.recall.dialogues import Dialogues, RecordedTurn
from tests.support.harnesses.in_process_pipeline import InProcessPipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueFigures:
    """One dialogue: its turns, what they cost together, and whom its facts are about."""

    conversation: str
    turns: int
    llm_calls: int
    input_tokens: int
    speakers: SpeakerFigures


async def run_dialogues(
    pipeline: InProcessPipeline, dialogues: Dialogues, *, annotated: bool, turns: int | None
) -> list[DialogueFigures]:
    """The figures of each dialogue, or of its first `turns`; where `annotated`, its facts are the annotators'."""
    subjects = subjects_of(dialogues) if annotated else {}
    runs = (_run(pipeline, number, some, subjects) for number, some in enumerate(said_in(dialogues, turns)))
    return list(await asyncio.gather(*runs))


def said_in(dialogues: Dialogues, turns: int | None) -> list[list[RecordedTurn]]:
    """Of each dialogue what was said, or its first `turns`."""
    names = sorted({turn.conversation for turn in dialogues.turns})
    return [[turn for turn in dialogues.turns if turn.conversation == name][:turns] for name in names]


def subjects_of(dialogues: Dialogues) -> dict[str, str]:
    """Whom the annotators' facts are about, by their texts."""
    return {fact.text: fact.subject for fact in dialogues.facts}


async def _run(
    pipeline: InProcessPipeline, partition: int, said: Sequence[RecordedTurn], subjects: dict[str, str]
) -> DialogueFigures:
    commits = [
        await pipeline.process_turn(turn, partition=partition, offset=offset, now=turn.occurred_at)
        for offset, turn in enumerate(dialogue_turns(said))
    ]
    user = said[0].conversation
    async with pipeline.pool.connection() as connection:
        speakers = await check_speakers(connection, user, said, subjects)
    return DialogueFigures(
        conversation=user,
        turns=len(commits),
        llm_calls=sum(step.llm_calls for commit in commits for step in commit.provenance.steps),
        input_tokens=sum(_tokens(commit) for commit in commits),
        speakers=speakers,
    )


def dialogue_turns(said: Sequence[RecordedTurn]) -> Iterator[Turn]:
    """As an application sends them: the turn names who speaks."""
    for one in said:
        yield Turn(
            turn_id=one.turn_id,
            scope=Scope(user_id=one.conversation),
            messages=(Message(role="user", content=one.text, name=one.speaker),),
            occurred_at=one.occurred_at,
            speaker=one.speaker,
        )


def _tokens(commit: Commit) -> int:
    """Of language models; vectors are not counted."""
    return sum(step.input_tokens for step in commit.provenance.steps if step.llm_calls)
