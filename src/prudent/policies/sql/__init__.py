"""A policy as one SQL expression, so that a database decides as Python does."""

from prudent.policies.sql.statement import policy_to_sql

__all__ = ["policy_to_sql"]
