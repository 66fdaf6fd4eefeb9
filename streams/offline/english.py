"""The little English that the rules need: from the first person to the third, denials, and words that name a slot."""

# ruff: noqa: SIM905 -- a list of words is best read as words

import re

from mnemolog.streams.offline.vocabulary import HABITS

VERBS: dict[str, tuple[str, str]] = {
    "is": ("be", "was"),
    "has": ("have", "had"),
    "lives": ("live", "lived"),
    "works": ("work", "worked"),
    "likes": ("like", "liked"),
    "loves": ("love", "loved"),
    "enjoys": ("enjoy", "enjoyed"),
    "adores": ("adore", "adored"),
    "prefers": ("prefer", "preferred"),
    "uses": ("use", "used"),
    "speaks": ("speak", "spoke"),
    "plays": ("play", "played"),
    "owns": ("own", "owned"),
    "drives": ("drive", "drove"),
    "studies": ("study", "studied"),
    "takes": ("take", "took"),
}
"""Third person to (base form, past) of the verbs that a denial can meet."""

_PAST = {past: base for base, past in VERBS.values() if base != "be"} | {"been": "am", "was": "am"}
_PAST_FORMS = frozenset(
    "went took met saw had read made did got flew drove spent gave came left was ran won sold lost wrote built quit"
    " became broke hurt began found bought taught thought told felt".split()
)
_SHORTEST = 3  # "is" is no verb with an ending
_FIXED = frozenset("cannot can must will should may".split())
_ADVERBS = frozenset("never always only usually often sometimes".split())
_PRONOUNS = {"my": "their", "our": "their", "me": "them", "us": "them", "myself": "themselves", "mine": "theirs"}
_PRONOUNS |= {"i": "they", "we": "they", "ours": "theirs", "am": "are"}
_PRONOUN = re.compile(rf"\b(?:{'|'.join(_PRONOUNS)})\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"^I (?P<how>do not|no longer|am no longer|am not|was not|was never|never was|have never|never|have not|did not"
    r"|cannot"
    r"|used to)"
    r" (?P<rest>.+)$",
    re.IGNORECASE,
)
_TOOLS = {
    "editor": "vs code|vscode|visual studio code|cursor|vim|neovim|emacs|sublime text|intellij|pycharm|zed|notepad",
    "browser": "firefox|chrome|safari|edge|brave|arc|opera|vivaldi",
    "operating_system": "linux|windows|macos|ubuntu|debian|fedora|arch",
    "programming_language": "python|rust|go|java|typescript|javascript|kotlin|ruby|c\\+\\+|c#|haskell|elixir",
}


def others_pronouns(words: str) -> str:
    """Words such as "my sister and me" as somebody else tells them: "their sister and them"."""
    return _PRONOUN.sub(lambda match: _PRONOUNS[match[0].lower()], words)


def third_person(words: str) -> str:
    """What follows "I", as it follows a name: "always take my tea" becomes "always takes their tea"."""
    verb, _, rest = words.partition(" ")
    if verb.lower() in _ADVERBS:
        return f"{verb.lower()} {third_person(rest)}"
    return f"{_conjugated(verb)} {others_pronouns(rest)}".strip()


def _conjugated(verb: str) -> str:
    known = {"am": "is", "have": "has", "do": "does", "go": "goes"}
    lower = verb.lower()
    if not lower.isalpha():
        return lower
    if lower in known:
        return known[lower]
    if lower in _FIXED or lower in _PAST_FORMS or lower.endswith("ed"):
        return lower
    if lower.endswith(("s", "x", "z", "ch", "sh")):
        return f"{lower}es"
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return f"{lower[:-1]}ies"
    return f"{lower}s"


def first_person(words: str) -> str | None:
    """What follows a name, as it follows "I": of "lives in Rome" it is "I live in Rome".

    None where the first word is no verb.
    """
    verb, _, rest = words.partition(" ")
    lower = verb.lower()
    if lower in _ADVERBS | {"no"}:
        adverb, rest = (f"{lower} longer", rest.removeprefix("longer ")) if lower == "no" else (lower, rest)
        own = first_person(rest)
        return own and f"I {adverb} {own.removeprefix('I ')}"
    known = {"is": "am", "are": "am", "was": "was", "were": "was", "has": "have", "does": "do", "goes": "go"}.get(lower)
    base = known or (lower if lower in _FIXED | _PAST_FORMS | HABITS or lower.endswith("ed") else _base(lower))
    return f"I {base} {rest}".strip() if base else None


def _base(verb: str) -> str | None:
    """The base form of a verb in the third person; None for a word that is none."""
    if not verb.isalpha() or not verb.endswith("s") or verb.endswith("ss") or len(verb) < _SHORTEST:
        return None
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("sses", "xes", "zes", "ches", "shes", "oes")) else verb[:-1]


def affirmed(words: str) -> tuple[str, str] | None:
    """A denied clause as it would be affirmed, with the words that denied it; None for what denies nothing."""
    match = _DENIAL.match(words)
    if not match:
        return None
    how, rest = match["how"].lower(), match["rest"]
    verb, _, more = rest.partition(" ")
    if how.startswith(("am", "was")) or how.endswith("was"):
        return f"I am {rest}", how
    if how == "have not" and verb.lower() not in _PAST:
        return None  # of what has not happened nothing follows
    return f"I {_PAST.get(verb.lower(), verb)} {more}".strip(), how


def denied(predicate: str, how: str) -> str | None:
    """A predicate such as "lives in Rome" denied with "no longer", "never" or "not"; None for an unknown verb."""
    verb, _, rest = predicate.partition(" ")
    forms = VERBS.get(verb) or _regular(verb)
    if not forms:
        return None
    base, past = forms
    if verb == "is":
        return f"{'was' if how == 'never' else 'is'} {how} {rest}"
    denials = {"no longer": f"no longer {verb}", "never": f"never {past}", "not": f"does not {base}"}
    return f"{denials[how]} {rest}"


def _regular(verb: str) -> tuple[str, str] | None:
    base = _base(verb)
    return (base, f"{base}d" if base.endswith("e") else f"{base}ed") if base else None


def from_gerund(words: str) -> str | None:
    """Of "smoking a pipe" it is "smoke a pipe"; None where the first word is no such form of a verb that is known."""
    verb, _, rest = words.partition(" ")
    stem = verb.lower().removesuffix("ing")
    if stem == verb.lower() or not stem:
        return None
    base = next((form for form in (stem, f"{stem}e", stem[:-1]) if form in HABITS), None)
    return base and f"{base} {rest}".strip()


def in_plural(verb: str) -> str:
    """A verb of the third person as many have it: "lives" as "live"."""
    many = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}
    return many.get(verb) or _base(verb) or verb


def slug(words: str) -> str:
    """Words as a slot's name; "" where nothing of a slot is in them."""
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return name[:64].rstrip("_") if name[:1].isalpha() else ""


def tool_slot(name: str) -> str:
    """The slot that a known tool fills, such as `editor`; "" for others."""
    for slot, names in _TOOLS.items():
        if re.fullmatch(names, name.lower()):
            return slot
    return ""
