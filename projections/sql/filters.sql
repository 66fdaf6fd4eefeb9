-- name: eq
-- The value of a field is this one.
{field} = {value}

-- name: any_of
-- It is one of these.
{field} = ANY({value})

-- name: gt
-- It comes after this one.
{field} > {value}

-- name: gte
-- It is this one, or comes after it.
{field} >= {value}

-- name: lt
-- It comes before this one.
{field} < {value}

-- name: lte
-- It is this one, or comes before it.
{field} <= {value}

-- name: contains
-- A text has this part.
strpos({field}, {value}) > 0

-- name: icontains
-- A text has this part, whatever the case of its letters.
strpos(lower({field}), lower({value})) > 0

-- name: exists
-- A field is set.
{field} IS NOT NULL

-- name: no_part
-- None of these conditions holds; one about a field that is not set does not hold.
({conditions}) IS NOT TRUE

-- name: scope_id
-- An id of a scope, null where it is not set.
nullif({column}, '')

-- name: json_value
-- A value inside metadata, null where it is not set.
nullif(f.metadata #> {path}::text[], 'null')

-- name: json_number
-- The same, null where it is no number.
CASE WHEN jsonb_typeof(f.metadata #> {path}::text[]) = 'number' THEN (f.metadata #> {path}::text[])::numeric END

-- name: json_text
-- The same, null where it is no text.
CASE WHEN jsonb_typeof(f.metadata #> {path}::text[]) = 'string' THEN f.metadata #>> {path}::text[] END

-- name: by_code_point
-- A text that is ordered by the numbers of its characters.
({field}) COLLATE "C"

-- name: json_member
-- A list inside metadata has this member.
jsonb_typeof(f.metadata #> {path}::text[]) = 'array' AND f.metadata #> {path}::text[] @> jsonb_build_array({value})

-- name: year
-- The year, in UTC, in which a fact was stored.
extract(YEAR FROM f.recorded_at AT TIME ZONE 'UTC')

-- name: month
-- The month of it.
extract(MONTH FROM f.recorded_at AT TIME ZONE 'UTC')

-- name: day
-- The day of the month.
extract(DAY FROM f.recorded_at AT TIME ZONE 'UTC')

-- name: hour
-- The hour of the day.
extract(HOUR FROM f.recorded_at AT TIME ZONE 'UTC')

-- name: minute
-- The minute of the hour.
extract(MINUTE FROM f.recorded_at AT TIME ZONE 'UTC')

-- name: day_of_week
-- The name of the day.
(
    ARRAY['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
) [extract(ISODOW FROM f.recorded_at AT TIME ZONE 'UTC')::integer]

-- name: is_weekend
-- Whether it is a Saturday or a Sunday.
(extract(ISODOW FROM f.recorded_at AT TIME ZONE 'UTC') > 5)

-- name: quarter
-- The quarter of the year.
extract(QUARTER FROM f.recorded_at AT TIME ZONE 'UTC')

-- name: week_of_year
-- The week of the year by ISO 8601.
extract(WEEK FROM f.recorded_at AT TIME ZONE 'UTC')

-- name: state
-- The status of a fact at an instant, which {state} has. One whose end has passed counts as expired, as it will be.
CASE
    WHEN {state}.status IN ('active', 'pending_confirmation') AND least(f.valid_until, {state}.true_to) <= {at} THEN 'expired'
    ELSE {state}.status
END

-- name: active
-- The state of a fact that is taken to be active.
'active'
