"""The same work on a cluster: shards in, partitions in between, shards out; Ray does it.

cluster.py      tasks on Ray, or in this process: the one module that knows Ray
parts.py        what tasks leave for each other, in a folder that all machines share
partitions.py   shards of vectors into partitions of similar ones
graph.py        the neighbours of each partition, in the partitions nearest to it
copies.py       near-identical items counted once, wherever they are
edges.py        how items sit in the graph, and the weights that follow
steps.py        the steps of refinement, and shards of refined vectors
refine.py       all of it in order
embed.py        pictures to shards of vectors, a task for each
"""
