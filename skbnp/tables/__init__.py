"""Tables as they come in: the columns of any table, and answers in the same form.

A frame of pandas is read and made by pandas, which alone has an index and names of any type; all
others (polars, pyarrow) go through narwhals. All that is kept of a table is plain data.
"""
