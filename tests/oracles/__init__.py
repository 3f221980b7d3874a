"""Programs that answer what qmodel answers, and share no code with it."""
