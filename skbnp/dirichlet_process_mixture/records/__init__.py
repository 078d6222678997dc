"""The mixture over tables whose rows are visited cell by cell: labels are functions of a record."""
