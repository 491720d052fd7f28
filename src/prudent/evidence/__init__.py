"""What outcomes say about a guarantee: audit, verdict, ladder, confidence certificate."""
