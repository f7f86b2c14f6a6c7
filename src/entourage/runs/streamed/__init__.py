"""Refining more vectors than fit into memory, from a file or a store, in stages that can be resumed.

work.py        the folder in which stages are kept until the last is done
sources.py     where vectors come from and refined ones go to: a .npy file, a store
recipe.py      what refines them
graph.py       their neighbours, and the weights of the edges
steps.py       the steps of refinement, from file to file
refine.py      all of it in order
"""
