"""The command: the only place that knows specifications, engines and views."""
