"""Who is who after some steps, worked out from what was told and decided alone, anew from the beginning each time.

A person has the name of the step that brought them: the turn that named them first, or the split. In a history of
people each turn says one thing of one of them, so that its name stands for its fact as well.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import combinations
from typing import Final

from tests.properties.sentences import NAME, TIES
from tests.properties.steps import START, Order, Step, Turn
from tests.properties.truth import Episode, Statement, are_rivals, timeline

SHORT_FORMS: Final = {"Alex": ("Alexander", "Alexandra"), "Dan": ("Daniel",)}
"""Names that may be short for others."""
ALIKE: Final = ({"Dan", "Daniel", "Daniela"}, {"Alexander", "Alexandra"})
"""Names of two people who may yet be one."""
SEVERAL: Final = {"my colleague"}
"""What several may be to the user: where no name is said, nobody known before is meant."""
USER: Final = "user"


def words_of(name: str) -> tuple[str, str]:
    """The tie and the proper name of how somebody is called; either may be empty."""
    tie = next((one for one in TIES if name == one or name.startswith(f"{one} ")), "")
    return tie, name.removeprefix(tie).strip()


def forms_of(name: str) -> set[str]:
    """The names that this one may be short for, or that are short for it."""
    return {*SHORT_FORMS.get(name, ()), *(one for one, full in SHORT_FORMS.items() if name in full)}


def are_two(names: Collection[str], others: Collection[str]) -> bool:
    """Whether there is a full name among each that the others do not have."""
    full, other_full = ({one for one in each if one not in {*SHORT_FORMS, *TIES}} for each in (names, others))
    return bool(full - other_full) and bool(other_full - full)


def key_of(text: str) -> str:
    """What a name says: "my wife Ana", as a name, says who is the wife."""
    return words_of(text)[0] or text


@dataclass(frozen=True)
class Name:
    """A name of somebody, by the turn that told it, or a person; one that is `own` lives as long as they do."""

    whose: str
    text: str
    by: "Told | None" = None
    own: bool = False
    at: datetime = START

    @property
    def key(self) -> str:
        return key_of(self.text)

    @property
    def is_tie(self) -> bool:
        return self.key in TIES

    @property
    def told_at(self) -> datetime:
        return self.at if self.by is None else self.by.step.arrives


@dataclass(eq=False)
class Told:
    """A step that was taken; one that does not `hold` was undone.

    Of a turn: whom it is about, the names that it gives them, whom somebody new may be (`twins`), two who may be one,
    and the statements that were of the same person when it was said. Of a command: the turns whose facts it deletes.
    """

    step: Step
    holds: bool = True
    whose: str = ""
    gives: tuple[str, ...] = ()
    twins: frozenset[str] = frozenset()
    proposed: tuple[str, str] | None = None
    beside: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def words(self) -> str:
        """How a turn names whom it is about."""
        assert isinstance(self.step, Turn)
        return self.step.said[0].subject or ""

    @property
    def pair(self) -> set[str]:
        """Two of whom somebody said that they may be one, or are two: nobody is to be asked about them again."""
        match self.step:
            case Order(kind="split" | "merge" | "confirm") as order:
                is_told = self.holds == (order.kind == "split")
                return {order.who, order.other or order.name} if is_told else set()
            case Order(kind="reject") if self.holds:
                return {self.step.who, self.step.other}
            case _:
                return set(self.proposed or ()) if self.holds else set()


@dataclass
class Seen:
    """Somebody as readers see them."""

    name: str
    names: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    """What holds of them, by the words of who said it first."""
    unresolved: set[str] = field(default_factory=set)
    disputed: list[Sequence[str]] = field(default_factory=list, compare=False)
    """Two values each that cannot hold at once, the later one last: the later one, or the one that came back, is
    unresolved."""
    pending: set[str] = field(default_factory=set)
    """Those that they may be one with, and nobody has said so or denied it."""
    ties: set[tuple[str, str]] = field(default_factory=set)
    """The predicates of what they are to the user, each with a turn that says so."""
    summary: tuple[int, int] | None = None
    """The version of the summary that is shown, and how many facts have changed since."""


class People:
    """All who are known after some steps."""

    def __init__(self, told: Sequence[Told]) -> None:
        self.told = told
        self.heads: dict[str, str] = {}
        """Who each one is now."""
        self.own: dict[str, str] = {}
        self.renamed: set[str] = set()
        self.names: list[Name] = []
        self.about: dict[str, str] = {USER: USER}
        """Whom each turn that holds is about."""
        self.living: set[str] = set()
        self.forgotten: set[str] = set()
        self.never_split: set[str] = set()
        """What splits that were undone had made: what was decided about it meant nothing else."""
        self.deleted: set[str] = set()
        self.brought: dict[str, Told] = {}
        self.twins: set[tuple[str, str]] = set()
        for one in told:
            self._take(one)

    def _take(self, told: Told) -> None:
        match told.step:
            case Turn(name=name):
                self._say(told, name)
            case Order(kind="split", name=new) as order:
                self.heads[new], self.own[new] = new, order.called
                if told.holds:
                    self._split(order)
                else:
                    self.never_split.add(new)
                    self._unite(new, order.who)
                    self.names.append(Name(new, order.called, told))  # a turn may have said it meanwhile
            case order if told.holds:
                self.deleted |= told.deletes
                self._decide(order)

    def _say(self, told: Told, turn: str) -> None:
        if told.whose == USER:
            self.heads[USER] = USER
        elif told.whose == turn:
            self.heads[turn], self.own[turn], self.brought[turn] = turn, told.gives[0], told
            self.twins |= {(turn, twin) for twin in told.twins}
        self.names += [
            Name(told.whose, text, told, own=told.whose == turn and not place) for place, text in enumerate(told.gives)
        ]
        if told.holds:
            self.about[turn] = told.whose
            self.living.add(told.whose)

    def _split(self, order: Order) -> None:
        same = self.one_with(order.who)
        moved = [one for one in order.facts if self.about.get(one) in same]
        self.about |= dict.fromkeys(moved, order.name)
        self._lose(order.who, [order.called, *order.names])
        rest = {key_of(one): one for one in order.names if one != order.called}
        self.names += [Name(order.name, name, at=order.arrives) for name in (order.called, *rest.values())]
        self.living.add(order.name)

    def _decide(self, order: Order) -> None:
        match order.kind:
            case "rename":
                self.own[order.who] = order.called
                self.renamed.add(order.who)
                self.names.append(Name(order.who, order.called, at=order.arrives))
            case "call":
                if order.other:
                    self._lose(order.other, [order.called])
                self.names.append(Name(order.who, order.called, at=order.arrives))
            case "merge" | "confirm" if not {order.who, order.other} & self.never_split:
                self._unite(order.who, order.other)
            case "forget":
                if order.who not in self.never_split:
                    self.forgotten |= self.one_with(order.who)
            case _:
                pass

    def _unite(self, one: str, into: str) -> None:
        head = self.heads[into]
        for other in self.one_with(one):
            self.heads[other] = head

    def _lose(self, loser: str, names: Iterable[str]) -> None:
        same, keys = self.one_with(loser), set(map(key_of, names))
        self.names = [one for one in self.names if not (one.whose in same and one.key in keys)]

    def one_with(self, one: str) -> set[str]:
        return {other for other, head in self.heads.items() if head == self.heads[one]}

    def known(self) -> dict[str, list[Name]]:
        """Those whom somebody speaks of, in deleted facts as well, each with their names."""
        found: dict[str, list[Name]] = {
            head: []
            for head in dict.fromkeys(self.heads.values())
            if head != USER and head not in self.forgotten and not self.one_with(head).isdisjoint(self.living)
        }
        for name in self.names:
            is_told = name.own or name.by is None or name.by.holds or self._is_said_in_a_fact(name)
            if is_told and name.whose not in self.forgotten and self.heads[name.whose] in found:
                found[self.heads[name.whose]].append(name)
        return found

    def _is_said_in_a_fact(self, name: Name) -> bool:
        return any(f" {name.text} " in f" {one.words} " for one in self.facts_of(self.heads[name.whose]))

    def facts_of(self, head: str) -> list[Told]:
        """The turns about somebody that hold, and whose facts were not deleted."""
        return [one for one in self._turns_of(head) if one.name not in self.deleted]

    def fact_names(self, head: str) -> set[str]:
        return {one.name for one in self.facts_of(head)}

    def open_facts(self) -> set[str]:
        """The turns of which what they say holds."""
        return {told.source for one in self.episodes() if one.ends is None for told in one.told}

    def _turns_of(self, head: str) -> list[Told]:
        return [
            one
            for one in self.told
            if (whose := self.about.get(one.name)) and whose not in self.forgotten and self.heads[whose] == head
        ]

    def shown_names(self) -> dict[str, list[Name]]:
        """The names that a person gave, or a fact tells that was not deleted."""
        return {head: [one for one in names if self._is_shown_name(one)] for head, names in self.known().items()}

    def _is_shown_name(self, name: Name) -> bool:
        is_merged = self.heads[name.whose] != name.whose
        if is_merged or name.by is None or (name.by.holds and name.by.name not in self.deleted):
            return True
        return self._is_said_in_a_fact(name)

    def is_shown(self, head: str) -> bool:
        if self._turns_of(head):
            return bool(self.facts_of(head))
        brought = self.brought.get(head)
        return brought is not None and brought.holds and brought.name not in self.deleted

    def shown_name(self, head: str) -> str:
        """What readers call them: what a person called them, else the first proper name, in the place of a tie."""
        own, shown = self.own[head], [one.text for one in self.shown_names()[head]]
        if head not in self.renamed and key_of(own) in TIES:
            named = [one for one in self.known()[head] if not one.is_tie]
            first = min(
                named, key=lambda one: (one.whose != head, one.told_at, one.text if one.by else ""), default=None
            )
            if first is not None:
                own = self.own[first.whose] if first.whose in self.renamed else first.text
        return own if any(f" {own} " in f" {name} " for name in shown) else [*shown, "unnamed person"][0]

    def meant(self, words: str, others: frozenset[str] = frozenset(), here: Collection[str] = ()) -> str | None:
        """Who of those that are known is meant; None where that is nobody, or in doubt.

        `others` are further names of whom a promoted fact is about, `here` those whom the same command brought.
        """
        tie, name = words_of(words)
        told = others | {name}
        known = self.known()
        if words == NAME:
            return USER
        shown = self.shown_names()
        tied, nameless = holders_of(tie, shown), self.nameless(tie)
        if tie in SEVERAL:
            tied_alone, nameless_alone = ([one for one in each if one in here] for each in (tied, nameless))
        else:
            tied_alone, nameless_alone = tied, nameless
        called = list(dict.fromkeys(one for key in sorted(told) for one in holders_of(key, known)))
        if others and called:
            called = [one for one in called if not are_two(told, {each.key for each in known[one]})]
        plain = [one for one in called if not any(name.is_tie for name in shown[one])]
        if not name:
            fitting = tied_alone if len(tied_alone) == 1 else nameless_alone
        elif tie and called:
            fitting = [one for one in called if one in tied] or (plain if len(called) == 1 else [])
        elif called:
            fitting = called if len(called) == 1 else plain
        elif nameless:
            fitting = nameless_alone if len(nameless) == 1 else nameless
        else:
            fitting = self._short(told, tie)
        return fitting[0] if len(fitting) == 1 else None

    def nameless(self, tie: str) -> list[str]:
        """Those who are this to the user, and have no name."""
        return [one for one in holders_of(tie, self.shown_names()) if self._is_nameless(one)]

    def bearer(self, words: str, head: str) -> str:
        """Of those who are one the one whose name was said; of a name that several have the one whom they are."""
        tie, name = words_of(words)
        forms = {name, *forms_of(name)}
        names = (self.known() if name else self.shown_names()).get(head, [])
        bearers = [one.whose for one in names if one.key in ({name} if name else {tie})]
        bearers = bearers or [one.whose for one in names if one.key in forms]
        return head if head in bearers or not bearers else bearers[0]

    def _short(self, told: Collection[str], tie: str) -> list[str]:
        """Those whose name is a form of one of these, who have no other full name or tie, and may be nobody else."""
        near = {form for name in told for form in forms_of(name)}
        alike = {one for names in ALIKE if not names.isdisjoint(told) for one in names}
        fitting = []
        for one, names in self.known().items():
            proper, ties = {n.text for n in names if not n.is_tie}, {n.key for n in names if n.is_tie}
            if proper & (near | alike):
                is_doubtful = (
                    not proper & near
                    or are_two(told, proper)
                    or (tie and ties and tie not in ties)
                    or self._has_twin(one)
                )
                fitting += [one, one] if is_doubtful else [one]
        return fitting

    def _has_twin(self, head: str) -> bool:
        """Whether a name brought them in doubt, or brought in doubt another name that may mean them."""
        known = self.known()
        pairs = [(self.heads[new], self.heads[twin]) for new, twin in self.twins]
        return any(
            head in pair and len({*pair} & known.keys()) > 1 and (head == pair[0] or not self._is_nameless(pair[0]))
            for pair in pairs
        )

    def _is_nameless(self, head: str) -> bool:
        return all(name.is_tie for name in self.known()[head])

    def twins_of(self, words: str, others: frozenset[str]) -> frozenset[str]:
        """Those whom the name of somebody new may mean."""
        known, (tie, name) = self.known(), words_of(words)
        told = {name, *others} - {""}
        if not told:
            return frozenset(holders_of(tie, self.shown_names()))
        alike = {one for names in ALIKE if told & names for one in names}
        called, near = (
            {one for name in names for one in holders_of(name, known)}
            for names in (told, alike.union(*map(forms_of, told)))
        )
        return frozenset(called or self.nameless(tie) or near)

    def given_names(self, words: str, whose: str | None, *, is_promoted: bool) -> tuple[str, ...]:
        """The names that words give whom they mean: a name stays whose it is, unless it is of somebody new."""
        tie, proper = words_of(words)
        names = self.shown_names()
        has = {one.key for one in names.get(whose or "", ())}
        is_free = whose is None or not (proper in {*has, NAME} or holders_of(proper, names))
        given = [proper] if proper and is_free else []
        texts = {one.text for one in names.get(whose or "", ())}  # each wording of a tie is a name of its own
        wording = tie if is_promoted else words
        return (*given, *([wording] if tie and wording not in texts else []))

    def proposal(self, words: str, whose: str | None) -> tuple[str, str] | None:
        """Somebody without a name who is what the words say, and may be the one whom they mean."""
        tie, name = words_of(words)
        nameless = self.nameless(tie)
        if not name or whose is None or len(nameless) != 1 or whose in nameless or whose == USER:
            return None
        return None if self._is_decided(nameless[0], whose) else (nameless[0], whose)

    def _is_decided(self, one: str, other: str) -> bool:
        same, others = self.one_with(one), self.one_with(other)
        return any(told.pair & same and told.pair & others for told in self.told)

    def pending(self) -> dict[str, tuple[str, str]]:
        """The turns that proposed a merge which waits, each with the two, as they are now."""
        known, found = {one for one in self.known() if self.is_shown(one)}, {}
        settled = {one.step.of for one in self.told if one.holds and isinstance(one.step, Order) and one.step.who}
        for one in self.told:
            if one.holds and one.proposed and one.name not in settled:
                merged, into = (self.heads[who] for who in one.proposed)
                if merged != into and {merged, into} <= known:
                    found[one.name] = merged, into
        return found

    def statements(self) -> list[tuple[Told, Statement]]:
        """What turns say, each of who it is about now."""
        found = []
        for one in self.told:
            if isinstance(one.step, Turn) and one.holds:
                said = one.step.said[0]
                meaning = replace(said.meaning, person=self.heads[self.about[one.name]])
                statement = Statement(replace(said, meaning=meaning), one.step.at, one.name)
                statement.state = "void" if one.name in self.deleted else "told"
                statement.beside = one.beside
                found.append((one, statement))
        return found

    def episodes(self) -> list[Episode]:
        return timeline(one for _, one in self.statements() if one.state == "told")

    def versions_since(self, turns: Iterable[str]) -> frozenset[str]:
        """These turns, and those that ended what they say, one after the other."""
        ends = {told.source: episode.ends for episode in self.episodes() for told in episode.told}
        said = {told.at: told.source for _, told in self.statements() if told.state == "told"}
        found, wanted = set[str](), set(turns)
        while wanted:
            found |= wanted
            later = {said.get(end) for one in wanted if (end := ends.get(one)) is not None}
            wanted = {one for one in later if one is not None} - found
        return frozenset(found)

    def seen(self) -> dict[str, Seen]:
        """What readers see of each: what only deleted facts told is left out."""
        open_now = [one for one in self.episodes() if one.ends is None]
        found = {
            head: Seen(self.shown_name(head), {name.text for name in names})
            for head, names in self.shown_names().items()
            if self.is_shown(head)
        }
        for head, one in found.items():
            mine = [episode for episode in open_now if episode.topic[0] == head]
            one.texts = sorted(told.said.text for episode in mine for told in episode.told)
            one.disputed = [said for pair in combinations(mine, 2) if (said := _disputed(*pair))]
            one.unresolved = {said[-1] for said in one.disputed}
            ties = ((words_of(told.words)[0], told.name) for told in self.facts_of(head))
            one.ties = {(TIES[tie], name) for tie, name in ties if tie}
            one.names.add(one.name)
            one.summary = self._summary_of(head, {told.source for episode in mine for told in episode.told})
        for pair in self.pending().values():
            for who, other in (pair, pair[::-1]):
                if who in found:
                    found[who].pending.add(other)
        return found

    def _summary_of(self, head: str, facts: set[str]) -> tuple[int, int] | None:
        version, found = 0, None
        for place, told in enumerate(self.told):
            if isinstance(told.step, Order) and told.step.kind == "summarise" and self.heads[told.step.who] == head:
                version += 1
                if told.holds and facts.issuperset(told.step.facts):
                    found = version, len(facts & {one.name for one in self.told[place:]})
        return found


def _disputed(one: Episode, other: Episode) -> list[str]:
    """Two values that were told of two people who are one now, or of which one came back."""
    said = sorted([one.told[0], other.told[0]], key=lambda told: told.begins)
    asked = are_rivals(one.meaning, other.meaning) and not any(a.source in (b.beside or ()) for a in said for b in said)
    return [told.said.text for told in said] if asked else []


def holders_of(key: str, known: Mapping[str, Sequence[Name]]) -> list[str]:
    """Those who have this very name, or are this to the user."""
    return [one for one, names in known.items() if key and key in {name.key for name in names}]


def people_after(steps: Iterable[Step], *, of_run: bool = False) -> People:
    """Who is who after steps in the order of their arrival, for the user or in the run."""
    told: list[Told] = []
    run: list[Told] = []
    for step in steps:
        if isinstance(step, Turn):
            place = run if step.in_run else told
            place.append(_said(step, People(place)))
            continue
        one = Told(step)
        if step.kind == "undo":
            (target,) = (other for other in told if other.name == step.of)
            target.holds = is_held = False
            while isinstance(target.step, Order) and target.step.kind == "undo":
                target, is_held = next(other for other in told if other.name == target.step.of), not is_held
                target.holds = is_held
        elif step.kind in ("delete", "forget"):
            one.deletes = People(told).versions_since(step.facts)
        elif step.kind == "promote":
            _promote(People(run), told, step)
        told.append(one)
    return People(run if of_run else told)


def _said(
    turn: Turn,
    before: People,
    called: str = "",
    others: frozenset[str] = frozenset(),
    here: Collection[str] = (),
) -> Told:
    """What a turn tells of whom its words mean, or the words by which somebody is `called` elsewhere."""
    one, words = Told(turn), turn.said[0].subject or ""
    meant = before.meant(called or words, others, here)
    one.whose = before.bearer(words, meant) if meant else turn.name
    one.twins = frozenset() if meant else before.twins_of(called or words, others)
    one.gives = () if meant == USER else before.given_names(words, meant, is_promoted=bool(called))
    one.proposed = before.proposal(words, meant)
    same = before.one_with(meant) if meant in before.heads else set()
    left = {
        told.at for _, told in before.statements() if not told.meaning.holds
    }  # a later value took no place of these
    over = {told.source for episode in before.episodes() if episode.ends in left for told in episode.told}
    one.beside = frozenset(name for name, whose in before.about.items() if whose in same and name not in over)
    return one


def _promote(run: People, told: list[Told], order: Order) -> None:
    """What holds in the run is said to the user too, of whom all names mean that somebody has in the run."""
    brought, new = set[str](), set[str]()
    for one in run.told:
        assert isinstance(one.step, Turn)
        if one.name in run.open_facts():
            names = run.known().get(run.heads[one.whose], ())
            parts = (next((name.key for name in names if name.is_tie == is_tie), "") for is_tie in (True, False))
            turn = replace(one.step, in_run=False, arrives=order.arrives)
            others = frozenset(name.key for name in names if not name.is_tie)
            said = _said(turn, People(told), " ".join(filter(None, parts)) or one.words, others, new)
            if {*(said.proposed or ())} & brought:
                said.proposed = None  # nobody is asked about two that one command brings
            told.append(said)
            brought.add(said.whose)
            new |= {said.whose} & {said.name}
