"""Named datasets, a module each: what is expected on disk, where to get it, and how its splits are read."""
