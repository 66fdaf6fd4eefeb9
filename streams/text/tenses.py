"""Whether a text tells in the past what another tells in the present, or the other way round."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from mnemolog.streams.text.readings import Reading
from mnemolog.streams.text.word_lists import AUXILIARIES, LINKING_WORDS, TENSE_ENDINGS, TENSES

_ALWAYS_PAST: Final = "born"
_SHORTEST_BASE: Final = 3


def changed_tenses(source: Reading, text: Reading) -> Iterator[str]:
    """The verbs of `text` in another tense than in `source`, where neither has the tense of the other.

    None where the source tells of an end ("used to live in"): that is lost or kept as a whole.
    """
    if source.ending:
        return
    said, told = _verbs(source), _verbs(text)
    for sides in TENSES:
        for one, other in (sides, sides[::-1]):
            if said & one and not said & other and told & other and not told & one:
                yield min(told & other)
    yield from sorted(now for past in said - told for now in _presents(past) & (told - said))
    yield from sorted(past for past in told - said if _presents(past) & (said - told))


def _verbs(reading: Reading) -> frozenset[str]:
    """The words but for "was" of "was born", and for those after a form of "to be" or "to have" ("has lived in")."""
    words = [token.casefold() for token in ("", *reading.tokens, "")]
    found = zip(words, pairwise(words[1:]), strict=False)
    return frozenset(word for before, (word, after) in found if before not in AUXILIARIES and after != _ALWAYS_PAST)


def _presents(past: str) -> frozenset[str]:
    """What a word is in the present, if it is a verb in the past; joining words are in no tense ("a dog named Rex")."""
    bases = ((past.removesuffix(end), now) for end, now in TENSE_ENDINGS if past.endswith(end))
    forms = frozenset(base + now for base, now in bases if len(base) >= _SHORTEST_BASE)
    return forms if past not in LINKING_WORDS else frozenset()
