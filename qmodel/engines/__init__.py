"""Engines: each takes a lowered program and options and gives an Outcome. None prints, none knows a view."""
