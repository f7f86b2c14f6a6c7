"""What all code stands on: progress, devices, threads, compilation, processes, random numbers, warnings, settings."""
