# What the scripts that run a tool in several MPI processes share. Sourced with the program in $tool, before cli.sh.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # in containers
command -v mpirun >/dev/null && [ -e "$(dirname "$tool")/../lib/libsparse-mpi.so" ] || {
    echo 'skipped: no mpirun, or no libsparse-mpi.so (scripts/setup mpi; make mpi)'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
}
together() { timeout -k 5 120 mpirun --oversubscribe "$@" </dev/null; }
