"""Which sentences state something, and why the others do not."""

# ruff: noqa: RUF001 -- words of many languages

import pytest

from mnemolog.schemas.provenance import OmissionReason
from mnemolog.streams.offline.sentences import MAX_LISTED, MAX_MESSAGE, MAX_SENTENCE, Sentence, sentences

OMITTED: dict[OmissionReason, list[str]] = {
    "question": [
        "Where do I live?",
        "what is a good restaurant near the lake",
        "I live in Bern, right?",
        "Wann ist mein Termin?",
        "Où est-ce que j'habite ?",
        "¿Dónde vivo?",
        "I should go, shouldn't I...",
    ],
    "greeting": [
        "Hi!",
        "Good morning",
        "Thanks, that was helpful!",
        "ok cool",
    ],
    "supposition": [
        "If I lived in Rome I would be happy",
        "I would love to live in Japan",
        "I'd love a dog",
        "I'd kill for a Leica",
        "Imagine I lived on the moon",
        "I wish I had a dog",
        "wish I could quit my job",
    ],
    "joke": [
        "yeah right, I live on Mars",
        "Yeah, right.",
        "I live on Mars ;)",
        "I adore traffic jams /s",
        "Oh great, another meeting",
    ],
    "quotation": [
        'Tom said: "I live in Rome"',
        'My therapist: "You should rest."',
        "Look:",
        'My sister said "I hate Mondays" and left',
        '"I live in Rome"',
        "> I live in Rome",
        "```\nI = 'live in Rome'\n```",
        'Er sagte: "Ich wohne in Rom"',
        "Elle a dit : « J'habite à Rome »",
    ],
    "request": [
        "Please translate this text",
        "Remind me to call mum",
        "can u remind me to buy milk",
        "Tell me a joke",
        "can you help me with my taxes",
        "Write a poem about my dog",
        "Call me tomorrow",
        "call me maybe",
        *("OK stop.", "Go on.", "You ask the questions.", "Now you guess."),
        *("Reply to her that I live in Linz now.", "Tell Anna I moved to Graz.", "Let Tom know that I'm vegan."),
    ],
}
STATED = [
    "I live in Bern.",
    "I can't run anymore",
    "my toddler ate crayons lol",
    "Quelle journée !",
    "je montrais la photo",
    "If I eat nuts I get hives",
    "When I was young I lived in Rome",
    "no nuts",
    "I'd been to Rome before",
    "What I love is hiking",
    'My favourite book is "Dune".',
    'I love "We Will Rock You"',
    "oh yeah, I have asthma too",
    "I take 5 mg (or 10?)",
    "Tom told me he moved to Rome",
    "Call me Bob.",
    "Remember that I'm allergic to nuts.",
    "I want to learn Spanish",
    "thanks to my doctor the pain is gone",
    "play tennis on sundays",
    "Plan to visit Rome in May",
    "I suppose I'm shy",
    "Schreibe gerade meine Masterarbeit",
    "Cherche appartement à Lyon",
    "Fais du vélo tous les jours",
    "Ich habe morgen einen Termin",
    "wenn ich Milch trinke, bekomme ich Bauchschmerzen",
    "Je ne mange pas de porc",
    "Soy celíaca",
    "Lavoro in una scuola",
    "Não como carne",
    "Ben İstanbul'da yaşıyorum",
    "猫が好きです。",
    "我住在北京。",
    "Mieszkam w Krakowie",
    *("Docker is what I use at work.", "Import taxes ruin my business.", "You helped me a lot last year."),
]


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
    [
        ("I'm allergic to nuts", ", ", "can I eat this?"),
        ("my son has a fever", " ", "what should I do?"),
    ],
)
def test_what_is_stated_before_a_question_is_kept(stated: str, between: str, asked: str) -> None:
    assert kinds(f"{stated}{between}{asked}") == [(stated, None), (asked, "question")]


@pytest.mark.parametrize("mark", ["Just kidding!", "haha", "😂"])
def test_a_mark_makes_a_joke_of_the_sentence_before_it(mark: str) -> None:
    assert [omitted for _, omitted in kinds(f"I like tea. I bought a yacht. {mark}")] == [None, "joke", "joke"]


COPIED = [
    "Look:\nOtto (10:31): I live in Oslo now\nOtto (10:32): I am vegan",
    "[10:31, 27/11/2026] Otto: I live in Oslo now",
    "27/11/2026, 10:31 - Otto: I live in Oslo now",
    "Otto 10:31 AM\nI live in Oslo now",
    "<otto> I live in Oslo now",
    "otto: I live in Oslo now",
    "Bo: where do you live?\nOtto: I live in Oslo now",
    "Hi Rita,\nI live in Oslo now.\nBest, Otto",
    "From: otto@mail.example\nSubject: news\nI live in Oslo now.",
    "On Monday, Otto wrote:\nI live in Oslo now.\nI am vegan.",
    "This is the other bot's reply: I live in Oslo now. I am vegan.",
    "Please proofread this text:\nI live in Oslo now. I am vegan.",
    'She wrote "I live in Oslo now. I am vegan."',
    "> I live in Oslo now",
    "```\nI live in Oslo now\n```",
    "~~~\nI live in Oslo now\n~~~",
    "<memory>\n1. Otto lives in Oslo.\n</memory>",
    "<notes>\n<note>\nI am vegan.\n</note>\nI live in Oslo\n</notes>",
    "<page lang='en'>I live in Oslo.\nI am vegan.</page>",
    *("Otto writes\nI live in Oslo now", "my brother Otto told me\nI am vegan", "Ida texted\n\nI live in Oslo."),
    "Otto writes:\nI live in Oslo now",
    "    I live in Oslo now",
    "def home():\n    return 7",
    "KeyError: 'home'\n  File \"home.py\", line 3",
    '{"home": "Oslo"}',
    "home = Oslo",
    "2026-11-27 10:31 INFO I live in Oslo now",
    "ERROR cannot find my home",
    "$ ls -l home",
    *("docker run -it home", "npm install home", "git commit my home", "import home", "HTTP/1.1 404 home"),
    *("segmentation fault at home", "panic: no home", "zsh: command not found: home"),
    *("Here is what Otto sent me. I live in Oslo.", "This is what my brother wrote. I moved to Oslo."),
    *(
        "Look at the message from Ida! I live in Oslo.",
        "My aunt's email. I live in Oslo.",
        "I got this from Ben. I am vegan.",
    ),
    "// I live in Oslo now",
    "# I live in Oslo now",
    "Otto - 10:31\nI live in Oslo now",
    "My friend wrote me this:\nI live in Oslo now",
    "Otto: where do you live?\notto: I live in Oslo now",
    "SELECT home FROM people",
    *("**Otto**: I live in Oslo now", "*Otto*: I am vegan", "_Otto_: I live in Oslo now", "**Otto:** I am vegan"),
    *("Otto (work): I live in Oslo now", "otto (he/him): I am vegan", "Ida [she/her], yesterday: I am vegan"),
    *(
        "user 2: I live in Oslo now",
        "Guest 14: I am vegan",
        "Otto :  I live in Oslo now",
        "Otto, last week: I am vegan",
    ),
    *("Otto \u2013 I live in Oslo now", "Ida Holm - I'm vegan"),
    "Dear Rita, I moved to Oslo. I am vegan. See you, Otto",
    "Dear all,\nI moved to Oslo.",
    *("I moved to Oslo. I am vegan. - Otto", "I live in Oslo now\n~ Ida", "I live in Oslo now. Hugs, Ida"),
    "name: Otto\ncity: Oslo\ndiet: I am vegan",
    "user:\n  city: Oslo\n  diet: vegan",
    '"name": "Otto",\n"city": "Oslo"',
    "- city: Oslo\n- diet: vegan",
    "id,text\n1,I live in Oslo\n2,I am vegan",
    "name;city\nOtto;Oslo",
    "a\tcity\nb\tOslo",
    "| name | city |\n|---|---|\n| Otto | Oslo |",
    "--- a\n+++ b\n-I live in Bern\n+I live in Oslo",
    "+ I live in Oslo\n- I am vegan",
    "`I live in Oslo`",
    "1. The user lives in Oslo.\n2. The user is vegan.",
]
OWN = [
    ("Rita: I live in Oslo now", "I live in Oslo now"),
    ("Update: I live in Oslo now", "Update: I live in Oslo now"),
    *((said, said) for said in ("Update \u2013 I moved to Oslo", "**Update**: I live in Oslo", "Hi - I'm vegan")),
    ("*Rita*: I live in Oslo now", "I live in Oslo now"),
    ("_Rita_: I live in Oslo now", "I live in Oslo now"),
    ("Rita \u2013 I live in Oslo now", "I live in Oslo now"),
    *((said, said) for said in ("Otto writes books.", "I told Otto", "My boss left, he said")),
    ("1. Ida lives in Oslo.", "Ida lives in Oslo."),
    ("Dear assistant, I live in Oslo.", "Dear assistant, I live in Oslo."),
    *((said, said) for said in ("Diet: vegan", "I use `git rebase` a lot")),
    ("My plan: I move in May", "My plan: I move in May"),
    ("Allergies: peanuts, cats", "Allergies: peanuts, cats"),
    ("I live in Bern (Switzerland)", "I live in Bern (Switzerland)"),
    ("Wichtig: ich bin krank", "Wichtig: ich bin krank"),
]


@pytest.mark.parametrize("message", COPIED)
def test_code_data_and_words_of_others_state_nothing(message: str) -> None:
    found = list(sentences(message, "Rita"))
    assert all(one.omitted == "quotation" for one in found if "Oslo" in one.text or "vegan" in one.text)
    assert "quotation" in {one.omitted for one in found}
    assert next(one.omitted for one in sentences(f"I like tea.\n{message}", "Rita")) in (None, "quotation")


@pytest.mark.parametrize(("message", "text"), OWN)
def test_a_label_of_the_speaker_or_of_a_list_is_no_quotation(message: str, text: str) -> None:
    assert [(one.text, one.omitted) for one in sentences(message, "Rita Keller")] == [(text, None)]


def test_only_the_copied_lines_are_left_out() -> None:
    said = "I like tea.\n> I live in Oslo\n```\nx\n```\n<a>\nx\n</a>\nI have a dog.\nHer reply: x.\nI live in Oslo."
    assert [one.text for one in sentences(said, "Rita") if one.omitted is None] == ["I like tea.", "I have a dog."]


def test_a_long_sentence_is_cut_at_a_word_and_its_rest_is_listed() -> None:
    kept, rest = sentences("word " * 200)
    assert (len(kept.text), kept.omitted) == (MAX_SENTENCE - 1, None)
    assert (rest.text[:9], len(rest.text), rest.omitted) == ("word word", MAX_LISTED, "too_long")


def test_a_long_message_is_cut_at_a_sentence_and_its_rest_is_listed() -> None:
    message = "I like tea in the morning. " * 1000
    *kept, rest = sentences(message)
    assert {one.text for one in kept} == {"I like tea in the morning."}
    assert rest == Sentence(text=rest.text, omitted="too_long")
    assert rest.text.startswith("I like tea in the morning. I like")
    assert sum(len(one.text) + 1 for one in kept) <= MAX_MESSAGE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("it is apnea, I look like Darth Vader haha", None),
        ("soy vegano menos en Navidad jajaja", None),
        ("haha sure, I am the king", "joke"),
        ("if I ever win I'm buying a boat", "supposition"),
        ("Thank you, that was very kind of you.", "greeting"),
        ("thanks, I moved to Rome", None),
        ("Hi, Tom broke his leg in a skiing accident", None),
        ('"I live on pies" - my neighbour', "quotation"),
        ("« J'habite au bout du monde » dixit un patient", "quotation"),
        ("morning! thanks again for yesterday", "greeting"),
        ("Morning walks keep me sane", None),
        ("Hat sich gelohnt, die neue Brille", None),
        ("yeah I am vegan haha", None),
        ("yes and I moved to Bern lol", None),
        ("oh yeah, and I am the queen lol", "joke"),
        ("perfect, thank you so much for the help with that yesterday evening", "greeting"),
        ("Thanks to the new pills the pain is gone", None),
        ("Chez moi il fait froid", None),
    ],
)
def test_laughter_at_the_end_thanks_and_other_marks(text: str, reason: str | None) -> None:
    assert {omitted for _, omitted in kinds(text)} == {reason}
