-- name: used_at_rank
-- How many facts that feedback of an interval names as used had been shown at each rank; rank 0 is of those not shown.
SELECT
    coalesce(shown.rank, 0)::integer AS rank,
    count(*) AS used
FROM commits AS c
CROSS JOIN LATERAL (SELECT convert_from(c.record, 'UTF8')::jsonb -> 'order' AS feedback) AS given
CROSS JOIN LATERAL jsonb_array_elements_text(given.feedback -> 'used') AS used (fact_id)
LEFT JOIN LATERAL jsonb_array_elements_text(given.feedback -> 'shown') WITH ORDINALITY AS shown (fact_id, rank)
    ON used.fact_id = shown.fact_id
WHERE c.order_kind = 'feedback'
    AND c.outcome = 'done'
    AND c.decided_at >= %(since)s
    AND c.decided_at < %(until)s
    AND {scope}
GROUP BY 1
ORDER BY 1;
