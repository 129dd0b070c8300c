"""The paper: checks of every statement, its figures, the report. An application of the rest."""
