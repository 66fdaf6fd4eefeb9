"""Whether two texts say the same by their words, deny the same, are about the same subject and hold for one term."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, Literal

from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.text.tokens import (
    comparable_text,
    names_of,
    negations_of,
    tokens_of,
    words_of,
)


def same_terms(fact: ExtractedFact, known: Candidate) -> bool:
    """Whether both name the same end, or none.

    An announced end of the known fact is no term of it, but the statement may name it.
    """
    if fact.valid_until is None:
        return known.valid_until is None
    return fact.valid_until in (known.valid_until, known.true_to)


SubjectRelation = Literal["same", "other", "unsure"]
EntityRelation = Literal["same", "other", "twin"]
"""What the entities of two facts tell of whom these are about; a possible twin is an entity of its own."""
USER: Final = "the user"

USER_WORDS: Final[frozenset[str]] = frozenset(
    {
        *("user", "the user", "speaker", "the speaker", "i", "me", "myself"),
        *("nutzer", "der nutzer", "die nutzerin", "benutzer", "der benutzer", "die benutzerin", "ich", "sprecher"),
        *("utilisateur", "l'utilisateur", "l\u2019utilisateur", "l'utilisatrice", "l\u2019utilisatrice", "je", "moi"),
        *("usuario", "el usuario", "la usuaria", "yo", "usu\u00e1rio", "o usu\u00e1rio", "a usu\u00e1ria", "eu"),
        *("utente", "l'utente", "l\u2019utente", "io", "gebruiker", "de gebruiker"),
    }
)
"""Subjects that say "the user" without a name, normalised; models write them in the language of the conversation."""


WORDS_FOR_USER: Final = frozenset(word for name in USER_WORDS for word in name.replace("\u2019", "'").split())
"""The words of these: where one is written with a capital ("Nutzer"), it is no name."""


def is_user_word(subject: str) -> bool:
    return normalise(subject) in USER_WORDS


def compare_subjects(one: str | None, other: str | None, user_names: Sequence[str] = ()) -> SubjectRelation:
    """Whether two subjects of one scope are the same person or thing.

    No subject, a word for the user and each of `user_names` are the user. It is unsure for a fact without a subject
    beside a named one, for the user beside a name while no name of the user is known, and for names of which one has
    all words of the other ("Mira", "Mira Kovac").
    """
    names = frozenset(map(normalise, user_names))
    left, right = _identity(one, names), _identity(other, names)
    if left == right or (left | right) <= _USER:
        return "same"
    if not (left and right) or (_USER & (left | right) and not names):
        return "unsure"
    words, others = ([frozenset(name.split()) for name in (names if side == _USER else side)] for side in (left, right))
    alike = any(one <= other or other <= one for one in words for other in others)
    return "unsure" if alike else "other"


def relate_subjects(fact: ExtractedFact, known: Candidate, user_names: Sequence[str] = ()) -> SubjectRelation:
    return relate_names(fact.subject, known.subject, known.subject_relation, user_names)


def relate_names(
    one: str | None, other: str | None, entities: EntityRelation | None, user_names: Sequence[str] = ()
) -> SubjectRelation:
    if entities in ("same", "other"):
        return entities
    by_names = compare_subjects(one, other, user_names)
    return "unsure" if entities == "twin" and by_names == "same" else by_names


def subject_in_turn(subject: str | None, speaker: str | None, user_names: Sequence[str]) -> str | None:
    """Whom a subject names in a turn of `speaker`: nobody, or "the user", is the speaker where that is not the user."""
    if speaker is None or not user_names or (subject is not None and not is_user_word(subject)):
        return subject
    return subject if compare_subjects(speaker, USER, user_names) == "same" else speaker


_USER: Final = frozenset({USER})


def _identity(subject: str | None, names: frozenset[str]) -> frozenset[str]:
    """One normalised name, that of the user for each of theirs; empty where there is no subject."""
    name = normalise(subject or "")
    return _USER if name in USER_WORDS or name in names else frozenset({name} - {""})


@lru_cache(maxsize=4096)  # a known fact is compared with many new ones
def _names_and_negations(text: str) -> tuple[tuple[str, ...], frozenset[frozenset[str]]]:
    tokens = tokens_of(text)
    return tuple(names_of(tokens)), negations_of(tokens)


def same_negations(one: str, other: str) -> bool:
    return _names_and_negations(one)[1] == _names_and_negations(other)[1]


def texts_equivalent(one: str, other: str) -> bool:
    """Whether two texts say the same by their words, in any script and at any length.

    The words are the same in the same order ("the dog bit the man" is not "the man bit the dog"), and so are the names
    by their capitals. They may differ in capitals, closing punctuation, quotes, definite articles, contractions
    ("isn't"), and in how a number is written.
    """
    return words_of(one) == words_of(other) and _names_and_negations(one)[0] == _names_and_negations(other)[0]


def copied_texts(recalled: Iterable[str], text: str, excerpt: str) -> list[str]:
    """The recalled texts, as comparable ones, that the excerpt of a fact with this text may be copied from.

    None that has the words of the fact's text with other capitals: who likes Turkey need not like turkey.
    """
    words = words_of(text)
    copied = (one for one in recalled if texts_equivalent(text, one) or words != words_of(one))
    return [known for known in map(comparable_text, copied) if excerpt in known]


def subjects_differ(
    one: ExtractedFact | Candidate, other: ExtractedFact | Candidate, user_names: Sequence[str] = ()
) -> bool:
    """Whether two texts that name nobody, as "I like tea", have, or may have, different subjects."""
    relation = other.subject_relation if isinstance(other, Candidate) else None
    if relation is not None:
        return relation != "same"
    if compare_subjects(one.subject, other.subject, user_names) == "same":
        return False
    texts = (normalise(one.text), normalise(other.text))
    names = (normalise(subject) for subject in (one.subject, other.subject) if subject and not is_user_word(subject))
    return not any(name in text for name in names for text in texts)
