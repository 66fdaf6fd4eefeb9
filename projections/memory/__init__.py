"""The schema `memory`: views and functions for SQL users, over whatever tables are live."""
