"""`python -m tests.quality.understanding`: run the labelled dialogues, and tell what of them is understood.

The provider `openai` is any endpoint that the usual MNEMOLOG_ settings name. Ends with 1 where the offline provider
is worse than its baseline.
"""

import sys

import orjson

from tests.bench.markdown import aligned
from tests.quality.runs import each_nth, exit_status, load_scores, parsed, results_of, run_parser
from tests.quality.understanding.cases import FAMILIES, load
from tests.quality.understanding.report import (
    BASELINE,
    PAGE,
    ScoredCase,
    cost_report,
    misses,
    page,
    regressions,
    report,
)
from tests.quality.understanding.scores import CaseScore, run_case, score


def main() -> None:
    given = parsed(run_parser("tests.quality.understanding", __doc__, families=FAMILIES, page="docs/understanding.md"))
    cases = load(None if given.split == "all" else given.split)
    cases = [case for case in cases if given.family in (None, case.family)]
    cases = each_nth(cases, given.every)
    pairs = zip(cases, results_of(given, cases, run_case), strict=True)
    scored = [ScoredCase(case=case, score=score(case, one), cost=one.cost) for case, one in pairs]
    scores = [one.score for one in scored]
    if given.verbose:
        sys.stdout.write(misses(scored) + "\n\n")
    sys.stdout.write(f"{aligned(report(scored))}\n\n{aligned(cost_report(scored))}\n")
    if given.json:
        given.json.write_bytes(orjson.dumps([one.model_dump() for one in scores], option=orjson.OPT_INDENT_2))
    if given.write_docs:
        PAGE.write_text(page(scored))
    sys.exit(exit_status(given, scores, BASELINE, lambda: regressions(scores, load_scores(CaseScore, BASELINE))))


if __name__ == "__main__":
    main()
