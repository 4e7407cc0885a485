"""Tables in and out: files, dataframes, checked columns."""
