"""A party's own table: reading it from files and databases, and turning it into numbers.

What one party does with its own rows and columns enters; nothing here knows of other parties.
"""
