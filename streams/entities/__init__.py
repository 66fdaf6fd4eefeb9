"""Finds out which entities the names in facts mean; pure, free of Kafka and of database code.

To read it from the top: `linker` looks up known entities and makes the events of a source; `links` has the entities of
each fact; `questions` are the names that a model is asked about; `relations` are relations between entities, and two
names of one entity; `known_names` searches known names in a text; `resolver` finds the entity of a name, step by step;
`names` takes a name apart and compares names as text. `subjects` says whether two facts are about one entity.
"""
