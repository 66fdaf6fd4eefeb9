"""Decides what the facts of one turn mean for the known facts of its scope; free of Kafka and of database code.

To read it from top to bottom, each module imports only later ones:

`turn` decides a turn: it looks facts up, classifies them, asks the LLM all questions at once, and has events made.
`decide` has the table: classification and judgement to events, statement by statement.
`questions` asks about known facts beside these: ends that were said later, and facts that are unresolved.
`overwrites` makes the events of decisions that end known facts, holds such decisions back, and closes held ones; and
those of late statements, about facts that have ended since.
`events` builds the events about one statement, and those of a repetition.
`classify` sorts a fact by similarity, words, key and time alone: new, duplicate, conflict or obsolete; and keeps what
the turn's earlier decisions did.
`unread_turns` has what becomes of a turn that no model could read.
`guards` are the policies that block or defer a decision that would end a known fact; only they clear facts for an end.
`rules` are the policy, thresholds and names by which a turn is decided.

`limits` checks a turn against the limits of its scope and tenant; `commits` makes the record for the log.
"""
