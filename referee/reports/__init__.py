"""Turn results into rows, and rows into tables for people, and JSON and CSV for programs."""
