"""What workers of the simulation talk to: a broker, Postgres and models."""
