"""Generated from `proto/linko/v1` by `python proto/generate.py`; not written by hand."""
