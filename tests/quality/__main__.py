"""`python -m tests.quality`: run the labelled conflicts through the pipeline and tell how well they were decided.

The provider `openai` is any endpoint that the usual MNEMOLOG_ settings name. Ends with 1 where the offline provider
is worse than its baseline.
"""

import sys

import orjson

from tests.quality.cases import FAMILIES, LANGUAGES, load
from tests.quality.report import BASELINE, PAGE, misses, page, regressions, report
from tests.quality.runs import each_nth, exit_status, load_scores, parsed, results_of, run_parser
from tests.quality.scores import Score, ScoredCase, run_case, score, word_of


def main() -> None:
    parser = run_parser("tests.quality", __doc__, families=FAMILIES, page="docs/quality.md")
    parser.add_argument("--language", choices=LANGUAGES, help="only cases in this language")
    given = parsed(parser)
    cases = [
        case
        for case in load(None if given.split == "all" else given.split)
        if given.family in (None, case.family) and given.language in (None, case.language)
    ]
    cases = each_nth(cases, given.every)
    observed = results_of(given, cases, run_case)
    scored = [ScoredCase(case=case, score=score(case, one)) for case, one in zip(cases, observed, strict=True)]
    if given.verbose:
        sys.stdout.write(misses(scored) + "\n\n")
    sys.stdout.write(report(scored, [one.cost for one in observed]) + "\n")
    if given.json:
        details = [
            {
                **one.case.model_dump(mode="json"),
                "score": one.score.model_dump(),
                "decisions": [{"word": word_of(event), "reason": event.decision.reason} for event in seen.turn.events],
                "facts": [{"from": row.source_id, "status": row.status, "text": row.text} for row in seen.after],
            }
            for one, seen in zip(scored, observed, strict=True)
        ]
        given.json.write_bytes(orjson.dumps(details, option=orjson.OPT_INDENT_2))
    if given.write_docs:
        PAGE.write_text(page(scored))
    scores = [one.score for one in scored]
    sys.exit(exit_status(given, scores, BASELINE, lambda: regressions(scored, load_scores(Score, BASELINE))))


if __name__ == "__main__":
    main()
