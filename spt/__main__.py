"""`python -m spt`: the same commands as `spt`, so that torchrun and accelerate can start them."""

from spt.cli import main

if __name__ == "__main__":
    main()
