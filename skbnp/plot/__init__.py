"""Display classes for fitted estimators; matplotlib is imported on use."""
