"""Networks from an observation and the picks so far to the value of each next pick."""
