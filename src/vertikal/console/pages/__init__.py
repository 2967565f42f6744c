"""Pages of the console, a file each: each gathers what it shows, and fills a template with it.

Sessions, forms and headers are the business of the folder above.
"""
