"""Split a classifier's uncertainty into disagreement in the data and ignorance of the model."""

__version__ = "0.1.0"
