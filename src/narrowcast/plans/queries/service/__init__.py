"""Merged queries served: answers, headers and extraction, and plans that change with the queries."""
