"""Other libraries that people search and train with: one thin file for each, which alone imports it.

Nothing in the package needs them. What is missing names the pip line that brings it.
"""
