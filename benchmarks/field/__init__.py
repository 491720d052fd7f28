"""Real forecasters and decisions, past to future: which rule earned more next, and which promises were kept."""
