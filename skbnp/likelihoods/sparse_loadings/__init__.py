"""Factors whose loadings are sparse under an Indian buffet process, and layers of them."""
