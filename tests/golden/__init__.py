"""Answers of Prudent kept as files, so that a change of its inside can be seen from outside.

``PYTHONPATH=tests python -m golden`` writes the files under ``expected`` anew; the difference is for ``git diff``.
"""
