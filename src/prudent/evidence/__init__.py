"""What outcomes say about a guarantee: audit, ladder, confidence certificate."""
