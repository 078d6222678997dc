"""Reports of fitted estimators: what was found, how sure that is, what to do next."""

from skbnp.reports.page import Picture, Report, Section, Verdict

__all__ = ["Picture", "Report", "Section", "Verdict"]
