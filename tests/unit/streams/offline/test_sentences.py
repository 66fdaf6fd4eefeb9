"""Which sentences state something, and why the others do not."""

# ruff: noqa: RUF001 -- words of many languages

import pytest

from mnemolog.schemas.provenance import OmissionReason
from mnemolog.streams.offline.sentences import MAX_MESSAGE, MAX_SENTENCE, Sentence, sentences

OMITTED: dict[OmissionReason, tuple[str, ...]] = {
    "question": (
        *("Where do I live?", "what is a good restaurant near the lake", "I live in Bern, right?", "¿Dónde vivo?"),
        *("Wann ist mein Termin?", "Où est-ce que j'habite ?", "I should go, shouldn't I..."),
    ),
    "greeting": (
        *("Hi!", "Good morning", "ok cool", "Thank you, that was very kind of you."),
        *("morning! thanks again for yesterday", "perfect, thank you so much for the help with that yesterday evening"),
    ),
    "supposition": (
        *("If I lived in Rome I would be happy", "I would love to live in Japan", "I'd love a dog"),
        *("Imagine I lived on the moon", "I wish I had a dog", "wish I could quit my job"),
        *("I'd kill for a Leica", "if I ever win I'm buying a boat"),
    ),
    "joke": (
        *("yeah right, I live on Mars", "I live on Mars ;)", "I adore traffic jams /s", "Oh great, another meeting"),
        *("haha sure, I am the king", "oh yeah, and I am the queen lol"),
    ),
    "quotation": (
        *('Tom said: "I live in Rome"', 'My therapist: "You should rest."', '"I live on pies" - my neighbour'),
        *('My sister said "I hate Mondays" and left', '"I live in Rome"', "> I live in Rome"),
        *("```\nI = 'live in Rome'\n```", 'Er sagte: "Ich wohne in Rom"', "Elle a dit : « J'habite à Rome »"),
    ),
    "request": (
        *("Please translate this text", "Remind me to call mum", "can u remind me to buy milk", "Tell me a joke"),
        *("can you help me with my taxes", "Write a poem about my dog", "Call me tomorrow", "call me maybe"),
    ),
}
STATED = (
    *("I live in Bern.", "I can't run anymore", "my toddler ate crayons lol", "no nuts", "I'd been to Rome before"),
    *("If I eat nuts I get hives", "When I was young I lived in Rome", "What I love is hiking", "I suppose I'm shy"),
    *('My favourite book is "Dune".', 'I love "We Will Rock You"', "oh yeah, I have asthma too", "Call me Bob."),
    *("I take 5 mg (or 10?)", "Tom told me he moved to Rome", "Remember that I'm allergic to nuts."),
    *("I want to learn Spanish", "thanks to my doctor the pain is gone", "play tennis on sundays"),
    *("Plan to visit Rome in May", "Hi, Tom broke his leg in a skiing accident", "thanks, I moved to Rome"),
    *("it is apnea, I look like Darth Vader haha", "yeah I am vegan haha", "yes and I moved to Bern lol"),
    *("Morning walks keep me sane", "Quelle journée !", "je montrais la photo", "Cherche appartement à Lyon"),
    *("Fais du vélo tous les jours", "Schreibe gerade meine Masterarbeit", "Ich habe morgen einen Termin"),
    *("wenn ich Milch trinke, bekomme ich Bauchschmerzen", "Hat sich gelohnt, die neue Brille", "Não como carne"),
    *("Je ne mange pas de porc", "Chez moi il fait froid", "Soy celíaca", "Lavoro in una scuola"),
    *("Mieszkam w Krakowie", "Ben İstanbul'da yaşıyorum", "猫が好きです。", "我住在北京。"),
)


def kinds(content: str) -> list[tuple[str, str | None]]:
    return [(one.text, one.omitted) for one in sentences(content)]


@pytest.mark.parametrize(("text", "reason"), [(text, reason) for reason in OMITTED for text in OMITTED[reason]])
def test_what_states_nothing_is_left_out_with_its_reason(text: str, reason: str) -> None:
    assert {omitted for _, omitted in kinds(text)} == {reason}


@pytest.mark.parametrize("text", STATED)
def test_what_states_something_is_kept_whole(text: str) -> None:
    assert kinds(text) == [(text, None)]


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("I like tea. I like cake!", ["I like tea.", "I like cake!"]),
        ("I like tea\nI like cake", ["I like tea", "I like cake"]),
        ("- I like tea\n* [x] I like cake\n• no nuts", ["I like tea", "I like cake", "no nuts"]),
        ("Dr. Smith is my doctor. I paid 3.50 for it.", ["Dr. Smith is my doctor.", "I paid 3.50 for it."]),
        ("Am 3. Mai habe ich frei. Das ist gut so.", ["Am 3. Mai habe ich frei.", "Das ist gut so."]),
        ("J'ai 3,5 kg. Il pleut.", ["J'ai 3,5 kg.", "Il pleut."]),
        ("El Sr. García es mi jefe. Llueve mucho.", ["El Sr. García es mi jefe.", "Llueve mucho."]),
        ("私は東京に住んでいます。犬が好きです！", ["私は東京に住んでいます。", "犬が好きです！"]),
    ],
)
def test_a_message_is_split_into_sentences(message: str, parts: list[str]) -> None:
    assert [text for text, _ in kinds(message)] == parts


@pytest.mark.parametrize(
    ("stated", "between", "asked"),
    [("I'm allergic to nuts", ", ", "can I eat this?"), ("my son has a fever", " ", "what should I do?")],
)
def test_what_is_stated_before_a_question_is_kept(stated: str, between: str, asked: str) -> None:
    assert kinds(f"{stated}{between}{asked}") == [(stated, None), (asked, "question")]


@pytest.mark.parametrize("mark", ["Just kidding!", "haha", "😂"])
def test_a_mark_makes_a_joke_of_the_sentence_before_it(mark: str) -> None:
    assert [omitted for _, omitted in kinds(f"I like tea. I bought a yacht. {mark}")] == [None, "joke", "joke"]


@pytest.mark.parametrize(
    ("line", "speaker"),
    [
        ("Caroline: I moved to Oslo", "Caroline"),
        ("Ann Lee: my dog is old", "Ann Lee"),
        ("Update: I moved to Oslo", None),
        ("Allergies: peanuts, cats", None),
        ("Wichtig: ich bin krank", None),
    ],
)
def test_a_script_names_its_speakers(line: str, speaker: str | None) -> None:
    assert [one.speaker for one in sentences(line)] == [speaker]
    assert [one.speaker for one in sentences("Bo: good weather\nCy: yes, sunny")] == ["Bo", "Cy"]


def test_a_long_sentence_is_cut_at_a_word_and_its_rest_is_listed() -> None:
    kept, rest = sentences("word " * 200)
    assert (len(kept.text), kept.omitted) == (MAX_SENTENCE - 1, None)
    assert (rest.text[:9], rest.text[-23:], rest.omitted) == ("word word", "… (199 characters more)", "too_long")


def test_a_long_message_is_cut_at_a_sentence_and_its_rest_is_listed() -> None:
    message = "I like tea in the morning. " * 1000
    *kept, rest = sentences(message)
    assert {one.text for one in kept} == {"I like tea in the morning."}
    assert rest == Sentence(text=rest.text, omitted="too_long")
    assert rest.text.startswith("I like tea in the morning. I like")
    assert sum(len(one.text) + 1 for one in kept) <= MAX_MESSAGE
