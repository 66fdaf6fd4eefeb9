"""Real Kafka and real Postgres from packages, as child processes over one data folder: no Docker, no account."""
