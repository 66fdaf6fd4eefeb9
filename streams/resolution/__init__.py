"""Decides what the facts of one turn mean for the known facts of its scope; free of Kafka and of database code.

To read it from top to bottom, each module imports only later ones:

`turn` decides a turn: it looks facts up, classifies, asks the LLM and makes the events.
`llm_decisions` asks the LLM once about all conflicts of the turn.
`decide` has the table: classification and LLM decision to events, statement by statement.
`retry_conflicts` asks again about unresolved facts that the turn has come near.
`later_ends` applies ends that were told before the late statement that they end.
`late_statements` makes the events of statements about what has ended since, and of history.
`overwrites` makes the events of decisions that end known facts, or holds them back.
`repetitions` makes the events of a statement that repeats a known fact.
`event_builder` builds the events about one statement.
`turn_state` has the effect of the turn's earlier decisions.
`classify` sorts a fact by similarity, words, key and time alone: new, duplicate, conflict or obsolete.
`guards` are the policies that block or defer a decision that would end a known fact.
`ports` say what is asked of the tables and of the reservations.

`lapses` closes held overwrites of which every target has ended, whoever ended them.
`limits` checks a turn against the limits of its scope and tenant; `commits` makes the record for the log.
"""
