"""Generated from `proto/linko/v1` by `.venv/bin/python proto/generate.py`; not written by hand."""
