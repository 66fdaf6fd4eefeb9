"""The ground floor: what every package uses and what imports none of them."""
