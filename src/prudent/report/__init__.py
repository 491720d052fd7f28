"""One page that a manager can read: verdict, guarantee, policy, evidence, and how to get it again."""

from prudent.report.contents import Report

__all__ = ["Report"]
