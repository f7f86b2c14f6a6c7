"""All methods under one protocol, each with settings chosen on training classes; and doctor: will refinement help?"""
