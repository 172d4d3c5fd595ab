"""The schema's history: how a league of any version becomes one of today."""
