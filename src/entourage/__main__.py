"""`python -m entourage` is `entourage`."""

from entourage.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
