"""Tells a story: turns, commands and the timer through the real stages, with what was said and asked kept beside."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from mnemolog.schemas.command import (
    CommandPayload,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    Reject,
    Resolve,
    Undo,
    Update,
)
from tests.properties.conversations import START, Said, SpokenTurn, World
from tests.properties.harness import Harness, History
from tests.properties.log_reader import OPEN, Json, Log, LoggedFact
from tests.properties.oracle import OracleReader, RandomReader
from tests.properties.sentences import NAME, SLOTS, SUBJECTS, Meaning, person_of, read, write
from tests.properties.stories import CROWD, CommandDraw, Draw, Speech, Story, TimerDraw

CERTAINTIES: Final = ("explicit", "explicit", "explicit", "strong", "weak", "speculation", "speculation")
SPEAKERS: Final = (None, NAME, NAME, "Tom")
FRIENDS: Final = ("Tom", "Bob", "Ida", "Jon", "Leo")


@dataclass
class Told:
    """A story as it was told: who said what, what was asked and answered, and the log that came of it."""

    history: History
    reader: OracleReader
    log: Log = field(default_factory=Log)
    turns: dict[str, SpokenTurn] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n  ".join(["the story:", *self.lines])

    def said(self, source_id: str, text: str) -> Said | None:
        turn = self.turns.get(source_id)
        return next((one for one in turn.said if one.text == text), None) if turn else None

    def meaning(self, fact: LoggedFact) -> Meaning | None:
        """What a fact means: by what was said where it was said, else by its words."""
        said = self.said(fact.commit["source_id"], fact.text)
        return said.meaning if said else read(fact.text, fact.fact.get("subject"))

    def person(self, fact: LoggedFact) -> str:
        """Whom a fact is about."""
        said = self.said(fact.commit["source_id"], fact.text)
        return said.meaning.person if said else person_of(fact.fact.get("subject"))


AfterStep = Callable[[Told, Sequence[Json]], Awaitable[None]]


async def tell(harness: Harness, story: Story, after_step: AfterStep) -> Told:
    """Tell a story; `after_step` is called with the new commits after each turn, command and run of the timer."""
    reader = OracleReader() if story.seed is None else RandomReader(story.seed)
    teller = _Teller(Told(await harness.start_history(reader), reader), World(story.forms), after_step)
    for step in _steps(story.draws):
        await teller.take(step)
    for command in tuple(teller.too_early):  # by now there may be what they are for
        await teller.take(command)
    return teller.told


def _steps(draws: Sequence[Draw]) -> Iterator[Sequence[Speech] | CommandDraw | TimerDraw]:
    """The draws, those of one turn together."""
    turn: list[Speech] = []
    for draw in draws:
        if isinstance(draw, Speech) and (not turn or draw.joins):
            turn.append(draw)
            continue
        if turn:
            yield turn
        turn = [draw] if isinstance(draw, Speech) else []
        if not isinstance(draw, Speech):
            yield draw
    if turn:
        yield turn


class _Teller:
    """Tells one story, step by step, from day to day."""

    def __init__(self, told: Told, world: World, after_step: AfterStep) -> None:
        self.told = told
        self._after_step = after_step
        self._world = world
        self._now = START + timedelta(hours=9)
        self._count = 0
        self.too_early: list[CommandDraw] = []

    async def take(self, step: Sequence[Speech] | CommandDraw | TimerDraw) -> None:
        done = len(self.told.history.commits)
        self._count += 1
        self._now += timedelta(hours=1)
        match step:
            case CommandDraw():
                await self._command(step)
            case TimerDraw(gap=gap):
                self._now += timedelta(days=gap)
                self.told.lines.append(f"{self._now:%m-%d} timer")
                await self.told.history.run_timer(now=self._now)
            case _:
                await self._turn(step)
        records = [commit.to_bytes() for commit in self.told.history.commits[done:]]
        appended = [self.told.log.append(record) for record in records]
        self.told.lines += [f"    -> {told_event(event)}" for commit in appended for event in commit["events"]]
        await self._after_step(self.told, appended)

    async def _turn(self, speeches: Sequence[Speech]) -> None:
        first = speeches[0]
        self._now += timedelta(days=first.act.gap)
        at = self._now + timedelta(hours=first.hours_ahead) - timedelta(days=first.days_late)
        repeated = self._repeated(first)
        speaker = repeated[0].speaker if repeated else SPEAKERS[first.speaker % len(SPEAKERS)]
        speaker = None if speaker == "Tom" and not self._is_named() else speaker
        said = [one for speech in speeches for one in self._statements(speech, speaker, at)]
        said = list({one.text: one for one in said}.values())
        earlier = [one.text for turn in self.told.turns.values() for one in turn.said]
        recalled = (earlier[first.recalls % len(earlier)],) if first.recalls is not None and earlier else ()
        turn = SpokenTurn(f"t{self._count}", at, tuple(said), speaker, recalled, first.infer, first.immutable)
        self.told.turns[turn.turn_id] = turn
        self.told.reader.extractions[turn.turn_id] = [one.extraction() for one in turn.said]
        if first.fails:
            self.told.reader.invalid.add(turn.turn_id)
        late = f" arriving {self._now:%m-%d}" if at != self._now else ""
        self.told.lines.append(
            f"{turn}{late}{' raw' if not turn.infer else ''}{' no valid reply' if first.fails else ''}"
        )
        await self.told.history.publish_turn(turn.as_turn(self.told.history.scope), now=self._now)

    def _is_named(self) -> bool:
        """Whether somebody was named as the user: the first speaker is."""
        return any(turn.speaker == NAME for turn in self.told.turns.values())

    def _statements(self, speech: Speech, speaker: str | None, at: datetime) -> Iterator[Said]:
        act, slot = speech.act, SLOTS[speech.act.slot % len(SLOTS)]
        repeated = self._repeated(speech)
        if repeated and repeated[0].speaker == speaker:
            yield replace(repeated[1], certainty=CERTAINTIES[act.certainty % len(CERTAINTIES)])
            return
        if speech.about and speaker != "Tom" and (answer := self._answer(speech, *speech.about)):
            yield answer
            return
        if speech.corrected and slot.single_valued:
            wrong, right = (slot.values[(act.action + place) % len(slot.values)] for place in range(2))
            yield self._said(speech, Meaning("user" if speaker != "Tom" else "Tom", slot.key, wrong), speaker)
            yield self._said(
                speech, Meaning("user" if speaker != "Tom" else "Tom", slot.key, right, "correction"), speaker
            )
            return
        if act.person == CROWD:
            for friend in FRIENDS:
                yield self._said(speech, Meaning(friend, slot.key, slot.values[act.action % len(slot.values)]), speaker)
            return
        person = list(SUBJECTS)[act.person % 3] if speaker != "Tom" else "Tom"
        yield self._said(speech, self._world.tell(person, slot, act.action, at), speaker)

    def _repeated(self, speech: Speech) -> tuple[SpokenTurn, Said] | None:
        """What a speech says again, in the same words, and the turn that said it before."""
        said = [(turn, one) for turn in self.told.turns.values() for one in turn.said]
        return said[speech.repeats % len(said)] if speech.repeats is not None and said else None

    def _answer(self, speech: Speech, which: int, how: int) -> Said | None:
        """A known fact again, with a detail, or its end; first one that waits, is asked about, or is to be ended."""
        log = self.told.log
        waiting = [fact for fact in log.facts.values() if fact.status == "pending_confirmation" or fact.unresolved]
        named = [target for fact in waiting for target in fact.event.get("targets", ())]
        cases = [*waiting, *(log.facts[one] for one in log.standing_for(named))]
        facts = [fact for fact in cases or log.facts.values() if fact.status in OPEN]
        fact = facts[which % len(facts)] if facts else None
        meaning = self.told.meaning(fact) if fact else None
        subject = fact.fact.get("subject") if fact else None
        if fact is None or meaning is None or meaning.person != person_of(subject):
            return None  # what Tom said of himself, only he says in the same words
        options = self._said_of(meaning, is_new=not waiting)
        told = options[how % len(options)]
        text = fact.text if told is meaning and read(fact.text) else write(told, subject, speech.act.wording)
        doubt = 0 if waiting or told.holds else speech.act.certainty
        return Said(told, text, subject, certainty=CERTAINTIES[doubt % len(CERTAINTIES)])

    def _said_of(self, known: Meaning, *, is_new: bool) -> Sequence[Meaning]:
        """What may be said of what is known, in the forms of the story; of what is new rather its end."""
        plain, more = Meaning(*known.topic), sorted(frozenset(known.slot.details) - known.details)
        by_form = {
            "detail": replace(plain, details=frozenset(more[:1]) or known.details),
            "end": replace(plain, form="end"),
            "denial": replace(plain, form="denial"),
        }
        said = [meaning for form, meaning in by_form.items() if form in self._world.forms]
        return said if is_new and said else [known, *said]

    def _said(self, speech: Speech, meaning: Meaning, speaker: str | None) -> Said:
        act = speech.act
        is_of_tom = speaker == "Tom" == meaning.person  # of his friends he speaks by name
        subjects = (None, "the user", "Tom") if is_of_tom else SUBJECTS[meaning.person]
        subject = subjects[act.subject % len(subjects)]
        silent = speech.silent_term and meaning.form != "announcement"
        return Said(
            meaning,
            write(replace(meaning, until=None) if silent else meaning, subject, act.wording),
            subject,
            nearness=("near", "near", "twin" if meaning.slot.single_valued else "alike", "far")[act.nearness % 4],
            certainty=CERTAINTIES[act.certainty % len(CERTAINTIES)] if self.told.log.facts else "explicit",
            excerpt=meaning.value if speech.short_excerpt else None,
        )

    async def _command(self, draw: CommandDraw) -> None:
        self._now += timedelta(days=draw.gap)
        payload = self._payload(draw)
        if payload is None:
            self.too_early.append(draw)
            return
        self.told.lines.append(f"c{self._count} {self._now:%m-%d} {payload.kind}: {self._about(payload)}")
        commit = await self.told.history.send_command(f"c{self._count}", payload, now=self._now)
        if commit is not None and commit.outcome != "done":
            self.told.lines[-1] += f" ({commit.outcome}: {commit.reason})"

    def _about(self, payload: CommandPayload) -> str:
        text = payload.model_dump_json(exclude={"kind"}, exclude_none=True)
        for fact in self.told.log.facts.values():
            text = text.replace(fact.id, f"<{fact.text}>")
        return text

    def _payload(self, draw: CommandDraw) -> CommandPayload | None:  # noqa: PLR0911 -- one way out a kind
        log, (first, second, third) = self.told.log, draw.picks
        active = [fact for fact in log.facts.values() if fact.status == "active"]
        pending = [fact for fact in log.facts.values() if fact.status == "pending_confirmation"]
        unresolved = [fact for fact in active if fact.unresolved]
        wanted = {"confirm": pending or active[: third // 9], "reject": pending, "resolve": unresolved}.get(
            draw.kind, active + pending
        )
        match draw.kind:
            case "undo" | "undo_event":
                return self._undo(draw)
            case "delete_key":
                return DeleteAll(key=SLOTS[first % len(SLOTS)].key)
            case _ if not wanted:
                return None
        fact = wanted[first % len(wanted)]
        ids = (UUID(fact.id),)
        match draw.kind:
            case "delete":
                return Delete(fact_ids=ids)
            case "confirm":
                return Confirm(fact_ids=ids)
            case "reject":
                return Reject(fact_ids=ids)
            case "resolve":
                return self._resolve(fact, second)
            case "correct":
                ended_at = max(fact.true_from, self._now - timedelta(days=1)) if third % 3 == 0 else None
                return Correct(edit=self._edit(fact, second), ended_at=ended_at)
            case _:
                return Update(edits=(self._edit(fact, second),))

    def _undo(self, draw: CommandDraw) -> Undo | None:
        log, (first, second, _) = self.told.log, draw.picks
        events = [(commit, event) for commit, event in log.events()]
        if not events:
            return None
        commit, event = events[first % len(events)]
        if draw.kind == "undo_event":
            return Undo(event_id=UUID(event["event_id"]), cascade=second % 2 == 0)
        return Undo(source_id=commit["source_id"], cascade=second % 2 == 0)

    def _resolve(self, fact: LoggedFact, pick: int) -> Resolve:
        action = ("replace", "contradict", "keep_both", "keep_old", "merge")[pick % 5]
        text = f"{fact.text} Merged by hand." if action == "merge" else None
        return Resolve.model_validate({"fact_id": fact.id, "action": action, "text": text})

    def _edit(self, fact: LoggedFact, pick: int) -> Edit:
        meaning = self.told.meaning(fact)
        if meaning is None:
            return Edit(fact_id=UUID(fact.id), text=f"{fact.text} Edited.")
        values = [value for value in meaning.slot.values if value != meaning.value]
        new = Meaning(meaning.person, meaning.key, values[pick % len(values)])
        self._world.note(new)
        subject = fact.fact.get("subject") or SUBJECTS[new.person][-1]
        return Edit(fact_id=UUID(fact.id), text=write(new, subject), key=new.key, value=new.value)


def told_event(event: Json) -> str:
    decision, fact = event["decision"], event.get("fact") or event.get("statement")
    guard = f" {decision['guard']}" if decision.get("guard") else ""
    verdict = f" {decision['verdict']}" if decision.get("verdict") else ""
    ended = f" ended {event['ended_at'][:10]}" if event.get("ended_at") else ""
    flag = " unresolved" if event.get("unresolved") else ""
    flag += f" moved ends: {len(event['moved_ends'])}" if event.get("moved_ends") else ""
    return f"{event['event']} ({decision['by']}{verdict}{guard}){ended}{flag} {fact['text'] if fact else ''}"
