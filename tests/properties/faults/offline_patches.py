"""How faults of the offline rules are put back by hand."""

import re
from datetime import timedelta
from typing import Any

from mnemolog.streams.offline import extract, resolve, sentences
from tests.properties.faults.former import PatchedPlaces, fault


@fault("a beginning that lies ahead is an end", found_by="dialogues")
def beginnings_are_ends() -> PatchedPlaces:
    right = extract._kept_fact

    def ending(said: str, speaker: str, about: str, at: Any, *rest: Any) -> Any:
        kept = right(said, speaker, about, at, *rest)
        begins = kept.event_time
        if begins is None or begins <= at:
            return kept
        return kept.model_copy(update={"valid_until": begins + timedelta(days=1)})

    return [(extract, "_kept_fact", ending)]


@fault("an answer of one word is a name", found_by="dialogues")
def any_answer_is_a_name() -> PatchedPlaces:
    right, keys = extract._reference, {"work": "employer", "live": "home_city", "name": "name", "dog": "dog"}

    def filling(said: str, reason: str | None, asked: str, own: Any) -> Any:
        about, fields = right(said, reason, asked, own)
        key = next((key for word, key in keys.items() if word in about), None)
        slot = {"key": key, "value": said.strip("."), "single_valued": key != "dog"}
        return about, fields | slot if key else fields

    return [(extract, "_reference", filling)]


@fault("a name that two have ends both", found_by="dialogues")
def shared_names_are_of_one() -> PatchedPlaces:
    return [(resolve, "TIE_TYPES", {})]


@fault("what stands behind a comma tells no places apart", found_by="dialogues")
def places_end_at_a_comma() -> PatchedPlaces:
    right, slots = sentences.same_value, sentences.slot_statements

    def same(one: str | None, other: str | None) -> bool:
        return right((one or "").partition(",")[0], (other or "").partition(",")[0])

    return [
        (sentences, "same_value", same),
        (sentences, "slot_statements", lambda said, at: slots(said.partition(",")[0], at)),
    ]


@fault("two names, or two birthdays, stand side by side", found_by="dialogues")
def other_values_are_no_contradiction() -> PatchedPlaces:
    right = resolve._of_slot

    def beside(statement: Any, new: Any, old: Any) -> Any:
        finding = right(statement, new, old)
        return None if finding and new.key == old.key and finding[0] != "KEEP" else finding

    return [(resolve, "_of_slot", beside)]


@fault("a liking denied in another word ends nothing", found_by="dialogues")
def dislikes_deny_nothing() -> PatchedPlaces:
    return [(resolve, "_of_words", lambda *_, **__: None)]


@fault("what others say in a message is the user's", found_by="dialogues")
def words_of_others_are_the_users() -> PatchedPlaces:
    def own(content: str, _: str | None) -> Any:
        return ((line.rpartition(": ")[2], False) for line in content.splitlines())

    return [
        (sentences, "_pieces", own),
        (sentences, "_PROSE", re.compile(r"(?s).*")),
        (sentences, "may_give_voice", lambda *_: False),
    ]
