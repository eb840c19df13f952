"""Writes six small bacterial genomes that descend from one: genomeN.gff with its sequence, as Prokka does, for Roary,
and genomeN.faa, its proteins, for proteinortho and OrthoFinder.

    genomes.py DIRECTORY

A gene is kept, lost, copied or changed on the way from the ancestor; one genome is farther from the others.
"""
import random
import sys

GENOMES, FAMILIES = 6, 60
BASES = "ACGT"
AMINO_ACIDS = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"  # of AAA, AAC, ... TTT
CODONS = [a + b + c for a in BASES for b in BASES for c in BASES]
PROTEIN_OF = dict(zip(CODONS, AMINO_ACIDS))
SENSE = [codon for codon in CODONS if PROTEIN_OF[codon] != "*"]


def changed(random_, gene, rate):
    return [random_.choice(SENSE) if random_.random() < rate else codon for codon in gene]


def genome(random_, ancestors, rate):
    """Genes, each a list of codons without the start and the stop."""
    genes = []
    for ancestor in ancestors:
        if random_.random() < 0.15:
            continue
        genes.append(changed(random_, ancestor, rate))
        if random_.random() < 0.2:
            genes.append(changed(random_, genes[-1], 3 * rate))
    genes += [random_.choices(SENSE, k=80) for _ in range(3)]
    return genes


def write(directory, number, genes, random_):
    name = f"genome{number}"
    sequence, features, proteins = "", [], []
    for i, gene in enumerate(genes, 1):
        sequence += "".join(random_.choices(BASES, k=random_.randrange(40, 80)))
        dna = "ATG" + "".join(gene) + "TAA"
        begin, end = len(sequence) + 1, len(sequence) + len(dna)
        sequence += dna
        tag = f"{name}_{i:05}"
        features.append(f"contig{number}\tProdigal:2.6\tCDS\t{begin}\t{end}\t.\t+\t0\t"
                        f"ID={tag};locus_tag={tag};product=hypothetical protein\n")
        proteins.append(f">{tag}\nM{''.join(PROTEIN_OF[codon] for codon in gene)}\n")
    with open(f"{directory}/{name}.gff", "w") as file:
        file.write(f"##gff-version 3\n##sequence-region contig{number} 1 {len(sequence)}\n")
        file.writelines(features)
        file.write(f"##FASTA\n>contig{number}\n")
        file.writelines(sequence[i:i + 60] + "\n" for i in range(0, len(sequence), 60))
    with open(f"{directory}/{name}.faa", "w") as file:
        file.writelines(proteins)


def main():
    random_ = random.Random(7)
    ancestors = [random_.choices(SENSE, k=random_.randrange(60, 200)) for _ in range(FAMILIES)]
    ancestors += [changed(random_, ancestor, 0.22) for ancestor in ancestors[:20]]  # old paralogs
    for number in range(1, GENOMES + 1):
        write(sys.argv[1], number, genome(random_, ancestors, 0.12 if number == GENOMES else 0.03), random_)


main()
