"""The part of the extraction prompt that instructions of a policy are."""

from mnemolog.schemas.instructions.model import DescribedCategory, ForbiddenTopic, Instructions


def prompt_part(instructions: Instructions | None) -> str:
    """What stands behind the system text; empty without instructions. It is the same for all turns of a policy."""
    if instructions is None:
        return ""
    parts = [
        _listed("More about categories:", [_category_line(one) for one in instructions.categories]),
        _listed(
            "Give no fact about these, not even in passing:", [_topic_line(one) for one in instructions.never_store]
        ),
        _language_line(instructions.languages),
        f"The operator's instructions:\n{instructions.text}" if instructions.text else "",
    ]
    said = [part for part in parts if part]
    return "\n" + "\n\n".join(said) + "\n" if said else ""


def _listed(title: str, lines: list[str]) -> str:
    return "\n".join([title, *lines]) if lines else ""


def _category_line(category: DescribedCategory) -> str:
    return f"- {category.name}: {category.description}"


def _topic_line(topic: ForbiddenTopic) -> str:
    name = topic.name.replace("_", " ")
    return f"- {name}: {topic.description}" if topic.description else f"- {name}"


def _language_line(languages: tuple[str, ...]) -> str:
    if not languages:
        return ""
    if len(languages) == 1:
        return f"Write text and search_text in the language {languages[0]} (excerpts stay as they are)."
    return (
        f"Write text and search_text in the language of the conversation where that is one of {', '.join(languages)}; "
        f"otherwise in {languages[0]} (excerpts stay as they are)."
    )
