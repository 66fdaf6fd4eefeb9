-- name: column_comments
-- What the columns of the views hold: under their name in all of them, or in one of them.
DO $$
DECLARE
    told record;
BEGIN
    FOR told IN
        SELECT DISTINCT ON (c.relname, a.attname) c.relname, a.attname, known.comment
        FROM (
            VALUES
            (NULL, 'fact_id', 'The id of this version of the fact.'),
            ('events', 'fact_id', 'The new fact, or the one that the event is about; NULL for an undo and a policy.'),
            (NULL, 'tenant', 'The customer of the installation.'),
            (NULL, 'user_id', 'The user of the scope; NULL where it is not set.'),
            (NULL, 'agent_id', 'The agent of the scope; NULL where it is not set.'),
            (NULL, 'app_id', 'The app of the scope; NULL where it is not set.'),
            (NULL, 'run_id', 'The run (session) of the scope; NULL where it is not set.'),
            (NULL, 'text', 'The fact as a sentence.'),
            (NULL, 'key', 'What the fact is about, for example home_city; NULL where it has no key.'),
            (NULL, 'value', 'The value of the key.'),
            (NULL, 'category', 'The category, by which the profile has its sections.'),
            (NULL, 'importance', 'From 0 to 1.'),
            (NULL, 'certainty', 'How certainly it was said.'),
            (NULL, 'confidence', 'From 0 to 1.'),
            (NULL, 'subject', 'The person or thing that the fact is about; NULL for the user.'),
            (NULL, 'speaker', 'Who said it.'),
            (NULL, 'excerpt', 'The words of the turn that it was taken from.'),
            (NULL, 'status', 'active, pending_confirmation, superseded, archived, expired, retracted or undone.'),
            ('turns', 'status', 'How the turn ended: facts, no_facts, rejected or failed; or pending.'),
            (NULL, 'unresolved', 'Whether it contradicts another fact and no decision could be had: both are current.'),
            (NULL, 'stale', 'Whether a target was no longer as the decision saw it.'),
            (NULL, 'event_time', 'The time that the fact names, where it names one.'),
            (NULL, 'valid_until', 'The end that was said with the fact.'),
            (NULL, 'true_from', 'Since when it is so.'),
            (NULL, 'true_to', 'Until when it was so: NULL while no end is known.'),
            (NULL, 'closed_at', 'When true_to became known.'),
            (NULL, 'believed_from', 'Since when it is held to be true; NULL for a pending fact.'),
            (NULL, 'believed_to', 'Until when it was held to be true: it turned out that it never was.'),
            (NULL, 'recorded_at', 'When it was added.'),
            (NULL, 'state_since', 'Since when it has its present state.'),
            (NULL, 'authority', 'extracted by a model, or given by a human.'),
            (NULL, 'action_hint', 'new, update, or retract: a sentence that only ends or denies something.'),
            (NULL, 'mention_count', 'How often it was said.'),
            (NULL, 'last_confirmed_at', 'When it was said again.'),
            (NULL, 'supersedes', 'The versions that this one ended.'),
            (NULL, 'superseded_by', 'The version that took its place.'),
            (NULL, 'source_id', 'The turn or command that it came from.'),
            (NULL, 'embedding_model', 'The model of its vector.'),
            (NULL, 'metadata', 'What the application gave with the turn.'),
            (NULL, 'begins_later', 'Whether it is known and not so yet.'),
            (NULL, 'state', 'The state in one word: see the function memory.state_at.'),
            ('pending', 'action', 'What a confirmation would do to the challenged facts.'),
            ('pending', 'ended_at', 'The end that it would give them.'),
            ('pending', 'guard', 'The rule that held it back.'),
            ('pending', 'needs_human', 'Whether no further statement can confirm it.'),
            ('pending', 'since', 'Since when it waits.'),
            (NULL, 'event_id', 'The event.'),
            (NULL, 'reason', 'Why it was decided so.'),
            (NULL, 'decided_by', 'Who decided: a rule, the model or a human.'),
            (NULL, 'model', 'The model that decided; NULL where none did.'),
            ('pending', 'verdict', 'What the model said.'),
            ('pending', 'challenged', 'The facts that a confirmation would overwrite; they are current until then.'),
            ('pending', 'beside', 'The facts that it would leave as they are, and stand beside.'),
            ('events', 'event', 'What happened, for example fact_added.'),
            ('events', 'text', 'What that fact says.'),
            ('events', 'targets', 'The facts that it ended or touched.'),
            (NULL, 'occurred_at', 'When it was said.'),
            (NULL, 'decided_at', 'When it was decided.'),
            ('events', 'prompt_version', 'The prompt that the model was asked with.'),
            ('events', 'guard', 'The rule that held it back.'),
            ('events', 'undone', 'Whether it is not in effect any more.'),
            ('events', 'payload', 'The whole event.'),
            ('turns', 'turn_id', 'The id that the application gave to the turn.'),
            ('turns', 'end_reason', 'Why it was rejected, or failed.'),
            ('turns', 'end_detail', 'More about that.'),
            ('turns', 'published_at', 'When Kafka had it.'),
            ('turns', 'infer', 'Whether a model extracts facts, or each message is one.'),
            ('turns', 'messages', 'What was said: [{"role", "content", "name"}].'),
            ('turns', 'emotion', 'How the user sounds, where the mood of turns is asked for.'),
            ('turns', 'intensity', 'How strong the emotion is, from 0 to 1.'),
            ('turns', 'energy', 'How much energy is in it: low, medium or high.'),
            ('turns', 'position', 'Its place in Kafka: topic/partition/offset.'),
            ('relationships', 'subject_id', 'The entity from which the relation is read.'),
            ('relationships', 'subject', 'Its name.'),
            ('relationships', 'predicate', 'What the object is to the subject: spouse, parent, employer, lives_in.'),
            ('relationships', 'object_id', 'The entity that is so.'),
            ('relationships', 'object', 'Its name.'),
            ('relationships', 'is_active', 'Whether it holds now.'),
            ('relationships', 'is_mirror', 'Whether it was stated in the other direction only.'),
            ('relationships', 'strength', 'How it is stated: strong, medium (in passing) or weak (only suggested).'),
            ('relationships', 'since', 'When the first of its evidence began to be true.'),
            ('relationships', 'until', 'When a relation that holds no longer ended.'),
            ('relationships', 'recorded_at', 'When it was stated first.'),
            ('relationships', 'evidence', 'The facts by which it holds, or that stated one that holds no longer.'),
            ('relationships', 'endings', 'The facts that say that it is over.')
        ) AS known (of_view, name, comment)
        INNER JOIN pg_attribute AS a ON a.attname = known.name
        INNER JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind = 'v' AND c.relname = coalesce(known.of_view, c.relname)
        WHERE c.relnamespace = 'memory'::regnamespace
        ORDER BY c.relname, a.attname, known.of_view NULLS LAST
    LOOP
        EXECUTE format('COMMENT ON COLUMN memory.%I.%I IS %L', told.relname, told.attname, told.comment);
    END LOOP;
END
$$;
