"""What all packages build on: progress, devices, threads, compilation, processes, randomness, warnings, settings."""
