/* What the epilogue of the Markov product leaves of a row. */
#ifndef SPARSE_MARKOV_KEPT_H
#define SPARSE_MARKOV_KEPT_H

#include "base/inline.h"
#include "sparse.h"

/* Entries of a row at most. Ties may keep more than selection and recovery ask for, hence some room. */
INLINE int64_t most_kept(const sp_markov_epilogue *epilogue)
{
    const int64_t most = epilogue->select > epilogue->recover ? epilogue->select : epilogue->recover;
    return epilogue->select && most < INT64_MAX / 2 ? most + most / 64 + 16 : INT64_MAX;
}

#endif
