"""The oracle: what is known after some steps of a history, worked out from what was told alone.

What was known at a time is what the steps that had arrived by then tell. An undone step counts as if it had never
been; a turn that comes late counts when it was said. Nothing here knows rows, events, or the product.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from tests.properties.sentences import Meaning
from tests.properties.steps import START, Order, Said, Step, Topic, Turn

HIGH_RISK: Final = {"identity", "health", "finance"}
RESEND: Final = timedelta(minutes=10)
"""Equal words of one speaker within it are one statement that was sent twice."""
Effect = Literal["now", "until", "never", "more"]
Claim = tuple[str, str, str, tuple[str, ...]]
"""Person, key, value and details of something that holds."""


@dataclass(eq=False)
class Statement:
    """A sentence that somebody said at a time; it counts where it is `told`, and waits where it is `held`.

    One that is `deleted` with all of its key holds no longer, but what it had ended stays ended; of a deleted
    correction it stays so that it `denies` what was corrected.
    """

    said: Said
    at: datetime
    source: str
    state: Literal["told", "held", "void", "deleted", "denies"] = "told"
    human: bool = False
    since: datetime | None = None
    """Since when it holds, where that is not when it was said."""
    instead_of: Topic | None = None
    """What an application has put it in the place of."""
    concerns: list["Statement"] = field(default_factory=list)
    """The first statements of what it would end, while it is held."""
    rivals: list["Statement"] = field(default_factory=list)
    """Those of them that are held themselves."""
    waits_for_human: bool = False
    confirmed: bool = False
    beside: frozenset[str] | None = None
    """The sources of the statements that it was held against; None for all."""

    @property
    def certain(self) -> bool:
        return self.human or self.confirmed or self.said.certainty == "explicit"

    @property
    def meaning(self) -> Meaning:
        return self.said.meaning

    @property
    def begins(self) -> datetime:
        return self.meaning.begins or self.since or self.at


@dataclass(eq=False)
class Episode:
    """A value that holds from a time to another, by one or more statements."""

    meaning: Meaning
    begins: datetime
    told: list[Statement]
    details: set[str] = field(default_factory=set)
    ends: datetime | None = None
    categories: frozenset[str] = frozenset()
    """Those of its first statement, and of all that added something."""

    @property
    def topic(self) -> Topic:
        return self.meaning.topic

    @property
    def human(self) -> bool:
        return any(one.human for one in self.told)

    @property
    def certain(self) -> bool:
        return self.human or self.told[0].certain

    @property
    def last(self) -> datetime | None:
        """When it ends, by what was said since or by its own term."""
        return min((end for end in (self.ends, self.meaning.until) if end), default=None)

    @property
    def confidence(self) -> float | None:
        """How sure it is: each turn that says it in other words removes a quarter of the doubt; None where it is a
        matter of more than plain words.
        """
        if self.details or any(one.human or one.since or not one.certain for one in self.told):
            return None
        others = {one.source for one in self.told if one.said.text != self.told[0].said.text}
        return 1 - 0.05 * 0.75 ** len(others - {self.told[0].source})

    def holds(self, at: datetime) -> bool:
        return self.begins <= at and not self.is_over(at)

    def is_over(self, at: datetime) -> bool:
        return self.last is not None and self.last <= at


@dataclass
class Truth:
    """All that was told, in one scope; `now` is the time of the last step."""

    statements: list[Statement] = field(default_factory=list)
    run: "Truth | None" = None
    now: datetime = START
    published: list[Episode] | None = None

    def episodes(self, without: Statement | None = None) -> list[Episode]:
        return timeline(one for one in self.statements if one.state not in ("held", "void") and one is not without)

    def open(self) -> list[Episode]:
        """What is listed now: what holds, or begins later."""
        return [one for one in self.episodes() if not one.is_over(self.now)]

    def held(self) -> list[Statement]:
        """The statements that wait for a confirmation."""
        return [one for one in self.statements if one.state == "held"]

    def waiting(self) -> set[tuple[Topic, str]]:
        """What waits for a confirmation, and what it says."""
        return {(one.meaning.topic, one.meaning.kind) for one in self.held()}

    def claims(self, at: datetime) -> set[Claim]:
        return claims_of(one for one in self.episodes() if one.holds(at))

    def taken_back(self) -> set[Topic]:
        """What was told and is not to be shown any more: it was deleted, undone, or corrected to something else."""
        told = {one.meaning.topic for one in self.statements if one.state in ("told", "held")}
        return {one.meaning.topic for one in self.statements if not one.concerns} - told

    def still_published(self) -> set[Topic]:
        """What the last published profile had, and is as it was then."""
        now = {(id(one.told[0]), one.topic, *sorted(one.details)) for one in self.open()}
        return {one.topic for one in self.published or () if (id(one.told[0]), one.topic, *sorted(one.details)) in now}

    def current(self, topic: Topic | None) -> Episode | None:
        return next((one for one in self.open() if one.topic == topic), None)

    def take(self, step: Step) -> None:
        self.now = step.arrives
        self._order(step) if isinstance(step, Order) else self._turn(step)
        is_deletion = isinstance(step, Order) and step.kind.startswith("delete")
        while gone := [one for one in self.held() if not self._is_about_something(one)]:
            # Nothing is left to be asked about; what a deletion leaves alone with its key is so.
            is_alone = is_deletion and len(gone) == 1 and gone[0].meaning.holds and not gone[0].meaning.details
            key = gone[0].meaning.topic[1]
            told = [one.meaning.topic[1] for one in self.open()]
            others = [*told, *(one.meaning.topic[1] for one in self.held() if one is not gone[0])]
            gone[0].state = "told" if is_alone and key not in others else "void"

    def _is_about_something(self, pending: Statement) -> bool:
        left = {id(told) for one in self.open() for told in one.told}
        left |= {id(one) for one in self.statements if one.state == "held" or not one.meaning.holds}
        return any(id(one) in left for one in pending.concerns)

    def _turn(self, turn: Turn) -> None:
        if turn.in_run:
            self.run = self.run or Truth()
            self.run.take(replace(turn, in_run=False))
            return
        for said in turn.said:
            if said.text not in turn.recalled:  # memory that the application put before the model
                self._add(Statement(said, turn.at, turn.name, human=turn.immutable))

    def _add(self, new: Statement) -> None:
        self.statements.append(new)
        self._judge(new)

    def _judge(self, new: Statement) -> None:
        """Whether a statement is to be confirmed first, and which of those that wait it confirms or rejects."""
        for pending in self.held():
            if (
                pending.source == new.source
                and new.meaning.form == "correction"
                and are_rivals(pending.meaning, new.meaning)
            ):
                pending.state = "void"
                continue
            if new.meaning.claim == pending.meaning.claim:
                is_resent = new.said.text == pending.said.text and new.at - pending.at <= RESEND
                if new.at > pending.at and new.certain and not is_resent and not pending.waits_for_human:
                    pending.state = "told"
                else:
                    new.state, new.concerns = "void", pending.concerns  # a mention of what waits
                    return
        ended = [
            (one.told[0], one.human) for one, how in effects(new, self.episodes(new)) if self._is_guarded(new, one, how)
        ]
        ended += [(one, one.human) for one in self._denials(new) if self._is_guarded_denial(new, one)]
        if ended:
            new.rivals = [one for one in self.held() if are_rivals(one.meaning, new.meaning)]
            new.state, new.concerns = "held", [*(one for one, _ in ended), *new.rivals]
            new.waits_for_human = any(is_human for _, is_human in ended)
            return
        adds = any(how == "more" for _, how in effects(new, self.episodes(new)))
        if new.said.slotless and adds:
            return  # what has no key repeats no value
        for pending in self.held():
            if new.at > pending.at and not pending.human and self._is_denied_by(pending, new):
                pending.state = "void"

    def _denials(self, new: Statement) -> Iterator[Statement]:
        """The statements that what now holds has ended or never was, and that nobody has taken back since."""
        of_topic = [one for one in self.statements if one.state == "told" and one.meaning.topic == new.meaning.topic]
        for one in of_topic:
            since = [other for other in of_topic if other.meaning.holds and one.at < other.at and other is not new]
            if (
                new.meaning.holds
                and one.meaning.form in ("end", "denial", "call_off")
                and one.at < new.at
                and not since
            ):
                yield one

    @staticmethod
    def _is_guarded_denial(new: Statement, known: Statement) -> bool:
        doubt = new.said.certainty != "explicit"
        risky = bool(known.said.categories & HIGH_RISK)
        denied = known.meaning.form == "denial" and known.certain
        return known.human or (risky and (doubt or denied)) or (doubt and known.certain)

    @staticmethod
    def _is_denied_by(pending: Statement, new: Statement) -> bool:
        """Whether a statement says again what a held one would end: an announced end it does not contradict."""
        ends = pending.meaning.form != "announcement" and not pending.meaning.details
        known = (one for one in pending.concerns if one not in pending.rivals)
        said = (new.meaning.topic, new.meaning.holds)
        return ends and said in {(one.meaning.topic, one.meaning.holds) for one in known}

    @staticmethod
    def _is_guarded(new: Statement, known: Episode, how: str) -> bool:
        if known.told[0].source == new.source:
            return False  # who corrects themselves within a turn is believed
        if how != "more" and any(one.at > new.at for one in known.told):
            return False  # it was said since: a late statement is history
        doubt = new.said.certainty != "explicit"
        risky = bool(known.categories & HIGH_RISK)
        denial = how == "never" and known.begins <= new.at
        ends = how != "more"
        return known.human or (risky and (doubt or (denial and known.certain))) or (ends and doubt and known.certain)

    def _order(self, order: Order) -> None:  # noqa: C901, PLR0912 -- one case a command
        known = self.current(order.topic)
        match order.kind:
            case "delete":
                assert known is not None
                self._void(known)
            case "delete_key" | "delete_category":
                self._delete_all(order)
            case "correct" | "update":
                assert known is not None
                assert order.said is not None
                human = order.kind == "correct"
                begins = known.begins if human or known.begins > order.arrives else order.arrives
                said = replace(order.said, also=known.categories)
                new = Statement(said, order.arrives, order.name, human=human or known.human, since=begins)
                if human or known.begins > order.arrives:
                    self._void(known)
                if human:  # what waits to take its place waits to take that of its correction
                    for pending in self.held():
                        is_other = pending.meaning.holds and pending.meaning.value != known.meaning.value
                        pending.concerns += (
                            [new]
                            if is_other and not {*map(id, known.told)}.isdisjoint(map(id, pending.concerns))
                            else []
                        )
                new.instead_of = known.told[0].instead_of if human else known.topic
                self.statements.append(new)
            case "confirm" | "reject":
                for pending in self.held():
                    if pending.source == order.of:
                        pending.state = "told" if order.kind == "confirm" else "void"
                        pending.confirmed = True
            case "import":
                assert order.said is not None
                assert order.true_from is not None
                self.statements.append(
                    Statement(order.said, order.arrives, order.name, human=order.human, since=order.true_from)
                )
            case "promote":
                self._promote(order)
            case "publish":
                self.published = self.open()
            case _:
                pass

    def _delete_all(self, order: Order) -> None:
        """Delete what holds or waits of a key or a category; what that had ended holds again where it is not meant."""

        def is_meant(categories: frozenset[str], key: str) -> bool:
            return order.called in categories if order.called else order.topic is not None and key == order.topic[1]

        episodes = self.episodes()
        for one in self.open():
            if is_meant(one.categories, one.topic[1]):
                before = (known for known in episodes if known.topic[:2] == one.topic[:2] and known.ends)
                are_all = all(is_meant(known.categories, known.topic[1]) for known in before)
                self._void(one, "deleted" if are_all else "void")
        for pending in self.held():
            if is_meant(pending.said.categories, pending.meaning.key):
                pending.state = "void"

    @staticmethod
    def _void(known: Episode, state: Literal["void", "deleted"] = "void") -> None:
        for one in known.told:
            denies = one.meaning.form == "correction" and state == "void"
            one.state = "denies" if denies else "deleted" if one.instead_of else state

    def _promote(self, order: Order) -> None:
        """What holds in the run, or ends something there, was told to the user whenever it was told to the run."""
        assert self.run is not None
        self.run.now = order.arrives
        kept = {id(told) for one in self.run.open() for told in one.told}
        for one in self.run.statements:
            if one.state == "told" and (not one.meaning.holds or id(one) in kept):
                self._add(replace(one, source=order.name))


def claims_of(known: Iterable[Meaning | Episode]) -> set[Claim]:
    """What holds, with all that is told of each value."""
    details: dict[Topic, set[str]] = {}
    for one in known:
        details.setdefault(one.topic, set()).update(one.details)
    return {(*topic, tuple(sorted(more))) for topic, more in details.items()}


def truth_after(steps: Sequence[Step]) -> Truth:
    """What is known after steps in the order of their arrival; undone ones count as if they had never been."""
    undone: set[str] = set()
    for step in reversed(steps):
        if isinstance(step, Order) and step.kind == "undo" and step.name not in undone and step.of:
            undone.add(step.of)
    truth = Truth()
    for step in steps:
        truth.now = step.arrives
        if step.name not in undone:
            truth.take(step)
    return truth


def timeline(statements: Iterable[Statement]) -> list[Episode]:
    """What statements tell, each taken when it was said; what was denied later counts as if it had never been said."""
    told = sorted(statements, key=lambda one: one.at)
    denied: dict[int, Statement] = {}
    while True:
        episodes: list[Episode] = []
        for one in told:
            if id(one) not in denied and (found := _tell(one, episodes, one in denied.values())):
                denied |= dict.fromkeys(map(id, found), one)
                break
        else:
            return [one for one in episodes if one.ends is None or one.ends > one.begins]


def _tell(new: Statement, episodes: list[Episode], has_denied: bool) -> list[Statement]:
    """Take a statement; gives the statements that it denies. A correction denies once, and ends what else there is."""
    never = [known for known, how in effects(new, episodes) if how == "never" and not has_denied]
    if never:
        return [one for known in never for one in known.told]
    if new.state != "denies":
        for known, how in effects(new, episodes):
            end = max(new.meaning.until or new.begins, new.begins) if how == "until" else new.begins
            if how != "more" and (known.ends is None or end < known.ends):
                known.ends = end
        if new.meaning.holds and new.state != "deleted":
            _hold(new, episodes)
    return []


def _hold(new: Statement, episodes: list[Episode]) -> None:
    meaning = new.meaning
    for known in episodes:
        if new.beside is not None and known.told[0].source not in new.beside:
            continue
        is_same = known.topic == meaning.topic and known.meaning.until == meaning.until
        if is_same and not known.is_over(max(new.at, new.begins)):
            if not meaning.details <= known.details:
                known.categories = (known.categories | new.said.categories) - {"other"} or known.categories
            known.told.append(new)
            known.details |= meaning.details
            known.begins = min(known.begins, new.begins)
            return
    later = [one.begins for one in episodes if are_rivals(one.meaning, meaning) and one.begins > new.begins]
    end = min(later, default=None)
    episodes.append(Episode(meaning, new.begins, [new], set(meaning.details), end, new.said.categories))


def are_rivals(one: Meaning, other: Meaning) -> bool:
    """Whether two values of a key cannot hold at once: a stay for a term is none."""
    lasting = one.holds and other.holds and not (one.until or other.until)
    same_slot = one.topic[:2] == other.topic[:2] and one.slot.single_valued
    return lasting and same_slot and one.value != other.value


def effects(new: Statement, episodes: Sequence[Episode]) -> Iterator[tuple[Episode, Effect]]:  # noqa: C901 -- the rules one below the other
    """What a statement does to values: ends them when it begins, or on a day that it names, denies or enriches them."""
    meaning = new.meaning
    for known in episodes:
        if known.topic[:2] != meaning.topic[:2] or known.is_over(new.begins):
            continue
        if new.beside is not None and known.told[0].source not in new.beside:
            continue
        is_same, has_begun = known.topic == meaning.topic, known.begins <= new.at
        match meaning.form:
            case _ if known.topic == new.instead_of and known.begins <= new.begins:
                yield known, "now"
            case "correction" if are_rivals(known.meaning, meaning):
                yield known, "never"
            case "state" | "change" if are_rivals(known.meaning, meaning) and known.begins <= new.begins:
                yield known, "now"
            case "state" | "change" if is_same and not meaning.details <= known.details:
                yield known, "more"
            case "end" if is_same and has_begun:
                yield known, "now"
            case "announcement" if is_same and known.meaning.until is None:
                yield known, "until"
            case "denial" if is_same:
                yield known, "never"
            case "call_off" if is_same and not has_begun:
                yield known, "never"
            case _:
                pass
