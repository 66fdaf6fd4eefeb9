"""Texts that somebody may search for."""

from collections.abc import Mapping
from typing import Final

SECONDS: Final = 5.0
"""Far more than any of these needs, and far less than what grows with the square of its length."""
QUESTIONS: Final[Mapping[str, str]] = {
    "1 MB of one word": "tea" * 350_000,
    "1 MB of words": " ".join(f"w{number}" for number in range(150_000)),
    "1 MB of spaces": "tea" + " " * 1_000_000,
    "1 MB of apostrophes": "'" * 1_000_000,
    "a frequent word": "tea " * 25_000,
    "only stop words": "is the and of",
    "only emoji": "🎉👩‍👩‍👧‍👦🇨🇭",
    "Arabic": "أين تعيش؟",
    "Chinese": "她住在哪里",
    "Thai": "เธออาศัยอยู่ที่ไหน",
    "Devanagari": "वह कहाँ रहती है?",
    "combining marks": "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢" * 200,
    "right to left marks": "\u202etea\u202c",
    "U+0000": "tea\x00tea",
    "half an emoji": "\ud800 tea",
    "tsquery syntax": "a & !b <-> (c | d):*AB '''",
    "back slashes": "\\" * 5000,
    "quotes": "it's \\ 'quoted' \\' \\\\",
    "placeholders": "%s %(text)s {filter} $1 $$",
    "SQL": "::jsonb; DROP TABLE facts; --",
    "an address": "https://example.org/a?b='c'&d=\\e <b>tags</b> -1.5e10 a@b.c",
    "names with signs": "O'Brien's (son) -- [x]* .+ \\M",
}
