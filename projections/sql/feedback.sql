-- name: ranks
-- Of the facts that feedback of an interval names, how many were shown at each rank, and how many of these were used.
-- Rank 0 is of those that were used and not shown.
WITH given AS (
    SELECT convert_from(c.record, 'UTF8')::jsonb -> 'order' AS feedback
    FROM commits AS c
    WHERE c.order_kind = 'feedback'
        AND c.outcome = 'done'
        AND c.decided_at >= %(since)s
        AND c.decided_at < %(until)s
        AND {scope}
)
SELECT
    named.rank::integer AS rank,
    count(*) AS shown,
    count(*) FILTER (WHERE named.is_used) AS used
FROM given
CROSS JOIN LATERAL (
    SELECT
        shown.rank,
        (given.feedback -> 'used') ? shown.fact_id AS is_used
    FROM jsonb_array_elements_text(given.feedback -> 'shown') WITH ORDINALITY AS shown (fact_id, rank)
    UNION ALL
    SELECT
        0 AS rank,
        true AS is_used
    FROM jsonb_array_elements_text(given.feedback -> 'used') AS used (fact_id)
    WHERE NOT (given.feedback -> 'shown') ? used.fact_id
) AS named
GROUP BY named.rank
ORDER BY named.rank;
