/* The sizes of the structs of _abi.py in the order there, for the check when the package is loaded. Made by
 * python/tools/abi.py from the headers: do not edit. */
#include "sparse.h"
#include "sp_ranks.h"
#include "mcl.h"
#include "contraction.h"
#include "gnn.h"
#include "io.h"

#pragma GCC visibility push(default)
const int32_t *spgraph_struct_sizes(void);
#pragma GCC visibility pop

const int32_t *spgraph_struct_sizes(void)
{
    static const int32_t sizes[] = {
        sizeof(sp_allocator), sizeof(sp_device_allocator), sizeof(sp_context_options), sizeof(sp_csr), sizeof(sp_coo),
        sizeof(sp_spgemm_options), sizeof(sp_spgemm_group), sizeof(sp_spgemm_info), sizeof(sp_similarity_options),
        sizeof(sp_contract_options), sizeof(sp_contract_info), sizeof(sp_dense), sizeof(sp_spmm_options),
        sizeof(sp_cbsr), sizeof(mcl_options), sizeof(mcl_iteration), sizeof(mcl_run), sizeof(mcl_clustering),
        sizeof(mcl_measures), sizeof(mcl_profile), sizeof(mcl_distance), sizeof(contraction_options),
        sizeof(contraction_info), sizeof(contraction_coarsening), sizeof(gnn_sampler_options), sizeof(gnn_minibatch),
        sizeof(io_read_options), sizeof(io_names), sizeof(io_part), sizeof(io_graph),
        0,
    };
    return sizes;
}
