"""Reads of a random genome, as FASTA."""

import random

random.seed(1)
genome = "".join(random.choice("ACGT") for _ in range(20000))
for number in range(12000):
    at = random.randrange(len(genome) - 100)
    print(f">read{number}\n{genome[at:at + 100]}")
