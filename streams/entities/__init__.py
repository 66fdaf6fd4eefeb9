"""Finds out which entity a name means; pure, free of Kafka and of database code.

To read it from top to bottom: `linker` looks up what is known; `link_events` makes the events of a turn;
`turn_entities` has what its facts name; in `source`, `fact_links` tells it of each fact, and `source_names` finds whom
each name means and keeps what the turn tells of entities; `found_entities` finds that of each name, step by step;
`entity_registry` has the entities that are known; `name_context` says whose names are read; `spoken_names` takes a name
apart; `name_keys` brings names into the form in which they are compared. `alias` has those that are told to be of one,
and finds them where no model does. `doubtful` is what a model is asked about names that are left in doubt.
`stated_relations` says what entities are to each other. What a fact takes over from others is in `carried`.
"""
