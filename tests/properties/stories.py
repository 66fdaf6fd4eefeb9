"""Stories: conversations with commands, the timer, late turns, several speakers, and replies that fail.

Each draws a few features and a key or two, and has much of these and nothing of the others: what is rare in a
conversation that has a little of everything, as a held overwrite whose target is merged, is common in one of few
features.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from hypothesis import strategies as st

from tests.properties.conversations import Act

CommandKind = Literal["delete", "correct", "update", "confirm", "reject", "resolve", "undo", "undo_event", "delete_key"]
Feature = Literal[
    "detail", "end", "denial", "plan", "term",
    "doubt", "repeat", "corrected", "several", "names", "people", "crowd", "distance",
    "late", "ahead", "recalled", "raw", "invalid", "immutable",
    "settle", "resolve", "delete", "edit", "undo", "timer",
]  # fmt: skip
"""What a story may have beside plain statements: forms of these, circumstances of their turns, commands, the timer."""

FEATURES: Final[tuple[Feature, ...]] = get_args(Feature)
MOST_FEATURES: Final = 2
_WEIGHTS: Final[dict[tuple[Feature, ...], int]] = {
    (): 1,
    ("doubt", "detail", "end", "settle"): 3,
    ("doubt", "detail", "denial", "late"): 2,
    ("doubt", "denial", "end"): 1,
    ("edit", "detail", "settle"): 1,
    ("people", "late"): 2,
    ("people", "invalid", "detail"): 1,
    ("crowd", "invalid", "distance", "resolve"): 2,
    ("names", "distance"): 1,
    ("corrected", "several"): 1,
    ("plan", "term", "timer"): 1,
    ("ahead", "end"): 1,
    ("recalled", "end"): 1,
    ("immutable", "detail", "end", "settle"): 2,
}
THEMES: Final = tuple(theme for theme, weight in _WEIGHTS.items() for _ in range(weight))
"""Features that act on each other; a story has those of one theme, and a few more."""
FORMS: Final[dict[Feature, frozenset[str]]] = {
    "detail": frozenset({"detail"}),
    "end": frozenset({"end"}),
    "denial": frozenset({"denial"}),
    "plan": frozenset({"plan", "call_off", "announcement"}),
    "term": frozenset({"term"}),
}
COMMANDS: Final[dict[Feature, tuple[CommandKind, ...]]] = {
    "settle": ("confirm", "confirm", "reject"),
    "resolve": ("resolve",),
    "delete": ("delete", "delete", "delete_key"),
    "edit": ("correct", "update"),
    "undo": ("undo", "undo_event"),
}
CROWD: Final = 9
"""The number of all friends together."""


@dataclass(frozen=True)
class Speech:
    """One statement with the choices of its turn; it joins the turn before where `joins` and that may be.

    It says again what was said as the `repeats`th, or is `about` a known fact; the reader never answers validly where
    it `fails`.
    """

    act: Act
    joins: bool = False
    days_late: int = 0
    hours_ahead: int = 0
    speaker: int = 1
    recalls: int | None = None
    repeats: int | None = None
    about: tuple[int, int] | None = None
    infer: bool = True
    immutable: bool = False
    fails: bool = False
    corrected: bool = False
    silent_term: bool = False
    short_excerpt: bool = False


@dataclass(frozen=True)
class CommandDraw:
    """A command on one of the facts that there are then; `picks` choose which, and the new text."""

    kind: CommandKind
    picks: tuple[int, int, int]
    gap: int


@dataclass(frozen=True)
class TimerDraw:
    gap: int


Draw = Speech | CommandDraw | TimerDraw


@dataclass(frozen=True)
class Story:
    """What is drawn; `seed` is that of a reader who answers at random, None stands for the perfect one."""

    draws: tuple[Draw, ...]
    features: frozenset[Feature] = frozenset(FEATURES)
    seed: int | None = None

    @property
    def forms(self) -> frozenset[str]:
        return frozenset({"state", "change"}).union(*(FORMS.get(one, ()) for one in self.features))


@dataclass(frozen=True)
class _Mix:
    """What the statements of a story have in common: features, keys, how the user is named, days between, nearness."""

    features: frozenset[Feature]
    slots: tuple[int, ...]
    subject: int
    speaker: int
    gaps: tuple[int, ...]
    nearnesses: tuple[int, ...]


@st.composite
def stories(draw: st.DrawFn, most: int = 9) -> Story:
    """Stories of up to `most` draws about one or two keys; with a perfect reader, or one that answers at random."""
    others = draw(st.lists(st.sampled_from(FEATURES), max_size=MOST_FEATURES, unique=True))
    slots = draw(st.sampled_from([(0,), (0,), (1,), (2,), (3,), (4,), (4,), (0, 1), (2, 4)]))
    features = frozenset((*draw(st.sampled_from(THEMES)), *others))
    mix = _Mix(
        features=features,
        slots=slots,
        subject=draw(st.integers(0, 3)),
        speaker=draw(st.integers(0, 1)),
        gaps=draw(st.sampled_from([(1, 2), (1, 2, 9)] if "late" in features else [(0,), (0, 1), (1, 2), (1, 2, 9)])),
        nearnesses=draw(st.sampled_from([(0, 2, 3), (3,)])) if "distance" in features else (0,),
    )
    draws = [_draw(draw, mix) for _ in range(draw(st.integers(4, most)))]
    return Story(tuple(draws), mix.features, draw(st.none() | st.integers(0, 1 << 16)))


def _draw(draw: st.DrawFn, mix: _Mix) -> Draw:
    """Of three draws two are statements, where the story has others at all."""
    kinds: list[CommandKind | None] = [kind for one in COMMANDS if one in mix.features for kind in COMMANDS[one]]
    if "timer" in mix.features:
        kinds.append(None)
    if not kinds or draw(st.integers(0, 2)):
        return _speech(draw, mix)
    kind = draw(st.sampled_from(kinds))
    if kind is None:
        return TimerDraw(gap=draw(st.sampled_from([1, 6, 30])))
    picks = draw(st.tuples(*[st.integers(0, 11)] * 3))
    return CommandDraw(kind, picks, gap=draw(st.sampled_from([0, 0, 1, 3])))


def _speech(draw: st.DrawFn, mix: _Mix) -> Speech:
    def chosen(feature: Feature, usual: Any, *others: Any) -> Any:
        return draw(st.sampled_from((usual, *others))) if feature in mix.features else usual

    act = Act(
        person=0 if "people" not in mix.features else draw(st.sampled_from([0, 0, 1, 2])),
        slot=draw(st.sampled_from(mix.slots)),
        action=draw(st.integers(0, 23)),
        wording=draw(st.sampled_from([0, 0, 0, 1])),
        subject=mix.subject if "names" not in mix.features else draw(st.integers(0, 5)),
        gap=draw(st.sampled_from(mix.gaps)),
        nearness=draw(st.sampled_from(mix.nearnesses)),
        certainty=chosen("doubt", 0, 4, 5, 5),
    )
    if chosen("crowd", False, False, True):
        act = Act(**{**vars(act), "person": CROWD})
    return Speech(
        act=act,
        joins=chosen("several", False, False, True),
        days_late=chosen("late", 0, 0, 1, 2, 10),
        hours_ahead=chosen("ahead", 0, 8),
        speaker=draw(st.integers(0, 3)) if "people" in mix.features else mix.speaker,
        recalls=draw(st.none() | st.integers(0, 5)) if "recalled" in mix.features else None,
        about=draw(st.none() | st.sampled_from(_ABOUT)),
        repeats=draw(st.none() | st.integers(0, 5)) if "repeat" in mix.features else None,
        infer=chosen("raw", True, True, False),
        immutable=chosen("immutable", False, False, True),
        fails=chosen("invalid", False, True),
        corrected=chosen("corrected", False, False, True),
        silent_term=chosen("term", False, True),
        short_excerpt=chosen("recalled", False, False, True),
    )


_ABOUT: Final = tuple((which, how) for which in range(2) for how in range(6))
"""Which known fact a statement is about, and what it says of it."""
