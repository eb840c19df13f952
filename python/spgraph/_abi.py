"""The C library's structs and functions. Made by python/tools/abi.py from its headers: do not edit."""

from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32,
                    c_int64, c_size_t, c_uint32, c_uint64, c_void_p)

SP_VERSION = "0.1.0"
SP_ABI = 13  # a digest of all declarations of the headers: 74236866d8bd2539
SP_OK, SP_ERROR_ARGUMENT, SP_ERROR_MATRIX, SP_ERROR_NOT_FINITE, SP_ERROR_OVERFLOW = 0, 1, 2, 3, 4
SP_ERROR_HOST_MEMORY, SP_ERROR_DEVICE_MEMORY, SP_ERROR_NO_DEVICE = 5, 6, 7
SP_ERROR_DEVICE, SP_ERROR_UNSUPPORTED, SP_ERROR_INTERRUPTED = 8, 9, 10
SP_HOST, SP_DEVICE = 0, 1
SP_F32, SP_F64 = 0, 1
SP_COMBINE_SUM, SP_COMBINE_MAX, SP_COMBINE_MIN, SP_COMBINE_FIRST, SP_COMBINE_MEAN, SP_COMBINE_COUNT = 0, 1, 2, 3, 4, 5
SP_I32, SP_I64 = 0, 1
SP_PLUS_TIMES, SP_PLUS_PAIR, SP_MIN_PLUS, SP_MAX_TIMES, SP_OR_AND = 0, 1, 2, 3, 4
SP_SPGEMM_AUTO, SP_SPGEMM_HASH, SP_SPGEMM_DENSE, SP_SPGEMM_WARP = 0, 1, 2, 3
SP_SPGEMM_GROUPS = 12
SP_METRIC_COSINE, SP_METRIC_DOT = 0, 1
SP_LOOPS_KEEP, SP_LOOPS_DROP, SP_LOOPS_ONLY = 0, 1, 2
SP_DENSE_F32, SP_DENSE_F64, SP_DENSE_F16, SP_DENSE_BF16 = 0, 1, 2, 3
SP_ROW_MAJOR, SP_COLUMN_MAJOR = 0, 1
SP_REDUCE_SUM, SP_REDUCE_MEAN, SP_REDUCE_MAX, SP_REDUCE_MIN = 0, 1, 2, 3
SP_SELECT_LOWER, SP_SELECT_UPPER, SP_SELECT_DIAGONAL, SP_SELECT_OFF_DIAGONAL, SP_SELECT_LT = 0, 1, 2, 3, 4
SP_SELECT_LE, SP_SELECT_EQ, SP_SELECT_NE, SP_SELECT_GE, SP_SELECT_GT, SP_SELECT_ABS_GE = 5, 6, 7, 8, 9, 10
MCL_OVERLAP_CUT, MCL_OVERLAP_KEEP, MCL_OVERLAP_SPLIT = 0, 1, 2
MCL_SYSTEM_UNKNOWN = -2
GNN_MAX_LAYERS = 16
GNN_SAMPLE_NODE, GNN_SAMPLE_LAYER, GNN_SAMPLE_FASTGCN, GNN_SAMPLE_CLUSTER = 0, 1, 2, 3
IO_AUTO, IO_ABC, IO_SIF, IO_ETC, IO_NATIVE, IO_MTX, IO_STRING = 0, 1, 2, 3, 4, 5, 6
IO_BLAST, IO_METIS, IO_CSR, IO_TSV, IO_CSV, IO_NPZ, IO_GRAPHML, IO_DIMACS = 7, 8, 9, 10, 11, 12, 13, 14
IO_BLAST_BITS, IO_BLAST_EVALUE, IO_BLAST_IDENTITY = 0, 1, 2
IO_NAME_GROUP = 4096
IO_BASE_AUTO = -1


class sp_allocator(Structure):
    _fields_ = [
        ("allocate", CFUNCTYPE(c_void_p, c_void_p, c_size_t)), ("release", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("user", c_void_p), ("resize", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)),
    ]


class sp_device_allocator(Structure):
    _fields_ = [
        ("allocate", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_int, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_int, c_void_p)), ("user", c_void_p),
    ]


class sp_context_options(Structure):
    _fields_ = [
        ("device", c_char_p), ("threads", c_int), ("memory_budget", c_size_t), ("allocator", POINTER(sp_allocator)),
        ("device_allocator", POINTER(sp_device_allocator)), ("interrupt", c_void_p),
    ]


class sp_csr(Structure):
    _fields_ = [
        ("rows", c_int64), ("cols", c_int64), ("nnz", c_int64), ("row_offsets", c_void_p), ("col_indices", c_void_p),
        ("values", c_void_p), ("value_type", c_int), ("space", c_int),
    ]


class sp_coo(Structure):
    _fields_ = [
        ("rows", c_int64), ("cols", c_int64), ("count", c_int64), ("row_indices", c_void_p),
        ("col_indices", c_void_p), ("values", c_void_p), ("index_type", c_int), ("value_type", c_int),
        ("space", c_int),
    ]


class sp_spgemm_options(Structure):
    _fields_ = [
        ("semiring", c_int), ("transpose_a", c_bool), ("transpose_b", c_bool), ("mask", POINTER(sp_csr)),
        ("complement", c_bool), ("algorithm", c_int), ("aia", c_int), ("to_host", c_bool),
    ]


class sp_spgemm_group(Structure):
    _fields_ = [
        ("name", c_char * 24), ("count", c_int64),
    ]


class sp_spgemm_info(Structure):
    _fields_ = [
        ("products", c_int64), ("product_nnz", c_int64), ("nnz", c_int64), ("dense_rows", c_int64),
        ("batches", c_int64), ("peak_bytes", c_int64), ("plan_bytes", c_int64), ("analysis_seconds", c_double),
        ("aia_seconds", c_double), ("symbolic_seconds", c_double), ("numeric_seconds", c_double), ("groups", c_int),
        ("group", sp_spgemm_group * 12),
    ]


class sp_similarity_options(Structure):
    _fields_ = [
        ("metric", c_int), ("top_k", c_int64), ("threshold", c_double), ("skip_self", c_bool),
    ]


class sp_contract_options(Structure):
    _fields_ = [
        ("combine", c_int), ("loops", c_int), ("half_loops", c_bool), ("symmetric", c_bool),
    ]


class sp_contract_info(Structure):
    _fields_ = [
        ("entries", c_int64), ("nnz", c_int64), ("peak_bytes", c_int64), ("group_seconds", c_double),
        ("combine_seconds", c_double), ("groups", c_int), ("group", sp_spgemm_group * 12), ("mirrored", c_bool),
    ]


class sp_dense(Structure):
    _fields_ = [
        ("rows", c_int64), ("cols", c_int64), ("stride", c_int64), ("values", c_void_p), ("type", c_int),
        ("space", c_int), ("layout", c_int), ("batch", c_int64), ("batch_stride", c_int64),
    ]


class sp_spmm_options(Structure):
    _fields_ = [
        ("algorithm", c_int), ("reduce", c_int), ("transpose", c_bool), ("deterministic", c_bool),
        ("partition_bytes", c_size_t),
    ]


class sp_cbsr(Structure):
    _fields_ = [
        ("rows", c_int64), ("cols", c_int64), ("k", c_int64), ("values", c_void_p), ("columns", c_void_p),
        ("type", c_int), ("space", c_int),
    ]


class mcl_options(Structure):
    _fields_ = [
        ("inflation", c_double), ("initial_inflation", c_double), ("initial_length", c_int64),
        ("main_length", c_int64), ("pre_inflation", c_double), ("loop_factor", c_double), ("discard_loops", c_bool),
        ("sum_loops", c_bool), ("degree_power", c_double), ("prune_number", c_int64), ("prune_cutoff", c_double),
        ("select", c_int64), ("recover", c_int64), ("recover_percent", c_double), ("dense_factor", c_int64),
        ("fast", c_bool), ("device_only", c_bool), ("overlap", c_int), ("force_connected", c_bool),
        ("weak_attraction", c_bool), ("sort", c_int),
    ]


class mcl_iteration(Structure):
    _fields_ = [
        ("number", c_int64), ("chaos", c_double), ("homogeneity_average", c_double), ("homogeneity_low", c_double),
        ("homogeneity_high", c_double), ("nnz_before", c_int64), ("nnz_expanded", c_int64), ("nnz_after", c_int64),
        ("nnz_input", c_int64), ("products", c_int64), ("empty_columns", c_int64), ("dense_columns", c_int64),
        ("mark", c_double), ("inflation", c_double), ("bumped", c_bool), ("next_inflation", c_double),
        ("seconds", c_double), ("cpu_seconds", c_double), ("product", sp_spgemm_info), ("order", c_void_p),
        ("marks", c_double * 3), ("converged", c_bool), ("interrupted", c_bool),
    ]


class mcl_run(Structure):
    _fields_ = [
        ("iterations", c_int64), ("converged", c_bool), ("stopped", c_bool), ("marks", c_double * 3),
        ("synopsis", c_double),
    ]


class mcl_clustering(Structure):
    _fields_ = [
        ("nodes", c_int64), ("clusters", c_int64), ("offsets", c_void_p), ("members", c_void_p),
        ("attractors", c_int64), ("system_of", c_void_p), ("overlap", c_int64), ("overlap_nodes", c_int64),
        ("garbage", c_int64),
    ]


class mcl_measures(Structure):
    _fields_ = [
        ("efficiency", c_double), ("modularity", c_double), ("mass_fraction", c_double), ("area_fraction", c_double),
        ("clusters", c_int64), ("largest", c_int64), ("smallest", c_int64), ("median", c_int64), ("center", c_double),
        ("average", c_double), ("dust", c_int64), ("half", c_int64), ("half_size", c_int64), ("singletons", c_int64),
        ("quartets", c_int64),
    ]


class mcl_profile(Structure):
    _fields_ = [
        ("size", c_int64), ("arcs_inside", c_int64), ("weight", c_double), ("weight_inside", c_double),
    ]


class mcl_distance(Structure):
    _fields_ = [
        ("moved_first", c_int64), ("moved_second", c_int64), ("information_first", c_double),
        ("information_second", c_double),
    ]


class contraction_options(Structure):
    _fields_ = [
        ("engine", c_int), ("how", sp_contract_options), ("undirected", c_bool), ("on_device", c_bool),
        ("algorithm", c_int), ("aia", c_int),
    ]


class contraction_info(Structure):
    _fields_ = [
        ("engine", c_int), ("nnz", c_int64), ("peak_bytes", c_int64), ("seconds", c_double), ("mirrored", c_bool),
    ]


class contraction_coarsening(Structure):
    _fields_ = [
        ("method", c_int), ("seed", c_uint64), ("least", c_int64), ("max_weight", c_double), ("weights", c_void_p),
    ]


class gnn_sampler_options(Structure):
    _fields_ = [
        ("kind", c_int), ("layers", c_int), ("fanout", c_int64 * 16), ("batch", c_int64), ("by_value", c_bool),
        ("bulk", c_int64), ("clusters", c_void_p), ("in_order", c_bool),
    ]


class gnn_minibatch(Structure):
    _fields_ = [
        ("layers", c_int), ("block", sp_csr * 16), ("node", c_void_p * 16), ("batch", c_void_p),
        ("batch_size", c_int64), ("edges", c_int64), ("bulk", c_void_p),
    ]


class io_read_options(Structure):
    _fields_ = [
        ("format", c_int), ("refuse_others", c_bool), ("lenient", c_bool), ("offers_lenient", c_bool),
        ("names_keywords", c_bool), ("any_sign", c_bool), ("matrix", c_bool), ("values", c_int),
        ("expect_values", c_bool), ("blast", c_int), ("minimum_score", c_double), ("score_column", c_char_p),
        ("node_column", c_char_p), ("transform", CFUNCTYPE(c_double, c_void_p, c_double)),
        ("transform_user", c_void_p), ("tab", c_char_p), ("interrupt", c_void_p), ("part", c_int), ("parts", c_int),
    ]


class io_names(Structure):
    _fields_ = [
        ("count", c_int64), ("groups", c_void_p), ("offsets", c_void_p), ("bytes", c_void_p),
    ]


class io_part(Structure):
    _fields_ = [
        ("entries", c_int64), ("announced", c_int64), ("above", c_int64), ("below", c_int64), ("checksum", c_int64),
        ("written", c_int64),
    ]


class io_graph(Structure):
    _fields_ = [
        ("format", c_int), ("nodes", c_int64), ("arcs", c_int64), ("first", c_int), ("packed", c_void_p),
        ("tails", c_void_p), ("heads", c_void_p), ("weights", c_void_p), ("values", c_int), ("symmetric", c_bool),
        ("undirected", c_bool), ("presumed", c_bool), ("skew", c_bool), ("matrix", sp_csr), ("constraints", c_int),
        ("node_weights", c_void_p), ("node_sizes", c_void_p), ("ids", c_void_p), ("names", io_names),
        ("unused", io_names), ("lines", c_int64), ("bytes", c_int64), ("odd_lines", c_int64), ("negative", c_int64),
        ("vast_line", c_int64), ("blast_hits", c_bool), ("part", io_part),
    ]


mcl_monitor = CFUNCTYPE(c_bool, c_void_p, POINTER(mcl_iteration), POINTER(sp_csr))


STRUCTS = (
    sp_allocator, sp_device_allocator, sp_context_options, sp_csr, sp_coo, sp_spgemm_options, sp_spgemm_group,
    sp_spgemm_info, sp_similarity_options, sp_contract_options, sp_contract_info, sp_dense, sp_spmm_options,
    sp_cbsr, mcl_options, mcl_iteration, mcl_run, mcl_clustering, mcl_measures, mcl_profile, mcl_distance,
    contraction_options, contraction_info, contraction_coarsening, gnn_sampler_options, gnn_minibatch,
    io_read_options, io_names, io_part, io_graph,
)


FUNCTIONS = {
    "sp_version": (c_char_p, []),
    "sp_abi": (c_int, []),
    "sp_status_string": (c_char_p, [c_int]),
    "sp_context_create": (c_int, [POINTER(sp_context_options), c_void_p]),
    "sp_context_destroy": (None, [c_void_p]),
    "sp_context_retain": (None, [c_void_p]),
    "sp_context_is_cuda": (c_bool, [c_void_p]),
    "sp_context_threads": (c_int, [c_void_p]),
    "sp_last_error": (c_char_p, [c_void_p]),
    "sp_free": (None, [c_void_p, c_void_p]),
    "sp_array_create": (c_int, [c_void_p, c_int64, c_size_t, c_int, c_void_p]),
    "sp_array_free": (None, [c_void_p, c_int, c_void_p]),
    "sp_array_copy": (c_int, [c_void_p, c_int64, c_size_t, c_void_p, c_int, c_void_p, c_int]),
    "sp_context_stream": (c_void_p, [c_void_p]),
    "sp_context_set_stream": (c_int, [c_void_p, c_void_p]),
    "sp_context_trim": (c_int, [c_void_p]),
    "sp_csr_free": (None, [c_void_p, POINTER(sp_csr)]),
    "sp_csr_copy": (c_int, [c_void_p, POINTER(sp_csr), c_int, POINTER(sp_csr)]),
    "sp_csr_from_coo": (c_int, [c_void_p, POINTER(sp_coo), c_int, c_bool, POINTER(sp_csr)]),
    "sp_csr_transpose": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr)]),
    "sp_csr_transpose_into": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr)]),
    "sp_csr_permute": (c_int, [c_void_p, POINTER(sp_csr), c_void_p, c_void_p, POINTER(sp_csr)]),
    "sp_csr_community_order": (c_int, [c_void_p, POINTER(sp_csr), c_void_p]),
    "sp_spgemm": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr), POINTER(sp_spgemm_options), POINTER(sp_csr), POINTER(sp_spgemm_info)]),
    "sp_spgemm_top_k": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr), c_int64, POINTER(sp_spgemm_options), POINTER(sp_csr), POINTER(sp_spgemm_info)]),
    "sp_similarity": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr), POINTER(sp_similarity_options), POINTER(sp_csr), POINTER(sp_spgemm_info)]),
    "sp_spgemm_plan_create": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr), POINTER(sp_spgemm_options), c_void_p]),
    "sp_spgemm_plan_info": (POINTER(sp_spgemm_info), [c_void_p]),
    "sp_spgemm_plan_execute": (c_int, [c_void_p, c_double, POINTER(sp_csr), POINTER(sp_csr), c_double, POINTER(sp_csr)]),
    "sp_spgemm_plan_free": (None, [c_void_p]),
    "sp_contract": (c_int, [c_void_p, POINTER(sp_csr), c_void_p, c_int, c_int64, POINTER(sp_contract_options), POINTER(sp_csr), POINTER(sp_contract_info)]),
    "sp_contract_into": (c_int, [c_void_p, POINTER(sp_csr), c_void_p, c_int, c_int64, POINTER(sp_contract_options), POINTER(sp_csr), POINTER(sp_contract_info)]),
    "sp_spmm_plan_create": (c_int, [c_void_p, POINTER(sp_csr), c_int64, POINTER(sp_spmm_options), c_void_p]),
    "sp_spmm_plan_set_values": (c_int, [c_void_p, c_void_p, c_int]),
    "sp_spmm_execute": (c_int, [c_void_p, c_double, POINTER(sp_dense), c_double, POINTER(sp_dense)]),
    "sp_spmm_execute_argument": (c_int, [c_void_p, POINTER(sp_dense), POINTER(sp_dense), c_void_p]),
    "sp_spmm_plan_free": (None, [c_void_p]),
    "sp_spmm_execute_heads": (c_int, [c_void_p, c_void_p, c_int, c_double, POINTER(sp_dense), c_double, POINTER(sp_dense)]),
    "sp_sddmm": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_dense), POINTER(sp_dense), c_void_p]),
    "sp_edge_softmax": (c_int, [c_void_p, POINTER(sp_csr), c_int64, c_void_p]),
    "sp_edge_softmax_backward": (c_int, [c_void_p, POINTER(sp_csr), c_int64, c_void_p, c_void_p]),
    "sp_maxk": (c_int, [c_void_p, POINTER(sp_dense), POINTER(sp_cbsr)]),
    "sp_maxk_expand": (c_int, [c_void_p, POINTER(sp_cbsr), POINTER(sp_dense)]),
    "sp_maxk_spmm": (c_int, [c_void_p, c_double, POINTER(sp_cbsr), c_double, POINTER(sp_dense)]),
    "sp_maxk_spmm_backward": (c_int, [c_void_p, POINTER(sp_dense), POINTER(sp_cbsr)]),
    "sp_csr_add": (c_int, [c_void_p, c_double, POINTER(sp_csr), c_double, POINTER(sp_csr), POINTER(sp_csr)]),
    "sp_csr_hadamard": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr), POINTER(sp_csr)]),
    "sp_csr_extract": (c_int, [c_void_p, POINTER(sp_csr), c_void_p, c_int64, c_void_p, c_int64, c_int, POINTER(sp_csr)]),
    "sp_csr_select": (c_int, [c_void_p, POINTER(sp_csr), c_int, c_double, POINTER(sp_csr)]),
    "sp_csr_top_k": (c_int, [c_void_p, POINTER(sp_csr), c_int64, POINTER(sp_csr)]),
    "sp_csr_degree_order": (c_int, [c_void_p, POINTER(sp_csr), c_void_p, c_int]),
    "sp_csr_sample_rows": (c_int, [c_void_p, POINTER(sp_csr), c_void_p, c_int64, c_void_p, c_uint64, c_void_p]),
    "mcl_options_default": (None, [POINTER(mcl_options)]),
    "mcl_options_scheme": (c_int, [c_void_p, POINTER(mcl_options), c_int]),
    "mcl_transform_parse": (c_int, [c_void_p, c_char_p, c_bool, c_void_p]),
    "mcl_transform_free": (None, [c_void_p, c_void_p]),
    "mcl_start_matrix": (c_int, [c_void_p, POINTER(sp_csr), c_void_p, POINTER(mcl_options), c_bool, POINTER(sp_csr)]),
    "mcl_iterate": (c_int, [c_void_p, POINTER(sp_csr), POINTER(mcl_options), mcl_monitor, c_void_p, POINTER(sp_csr), POINTER(mcl_run)]),
    "mcl_interpret": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr), POINTER(mcl_options), POINTER(mcl_clustering)]),
    "mcl_clustering_free": (None, [c_void_p, POINTER(mcl_clustering)]),
    "mcl_clustering_labels": (None, [POINTER(mcl_clustering), c_void_p]),
    "mcl_measure": (c_int, [c_void_p, POINTER(sp_csr), POINTER(mcl_clustering), POINTER(mcl_measures)]),
    "mcl_profile_clusters": (c_int, [c_void_p, POINTER(sp_csr), POINTER(mcl_clustering), POINTER(mcl_profile), c_void_p, c_void_p]),
    "mcl_compare": (c_int, [c_void_p, POINTER(mcl_clustering), POINTER(mcl_clustering), POINTER(mcl_distance)]),
    "contraction_product": (c_int, [c_void_p, POINTER(sp_csr), POINTER(sp_csr), POINTER(contraction_options), POINTER(sp_csr), POINTER(contraction_info)]),
    "contraction_coarsen": (c_int, [c_void_p, POINTER(sp_csr), POINTER(contraction_coarsening), c_void_p, c_void_p]),
    "contraction_add_weights": (c_int, [c_void_p, c_void_p, c_int64, c_int64, c_int, c_void_p]),
    "gnn_sampler_create": (c_int, [c_void_p, POINTER(sp_csr), POINTER(gnn_sampler_options), c_void_p]),
    "gnn_sampler_free": (None, [c_void_p]),
    "gnn_sampler_begin": (c_int, [c_void_p, c_void_p, c_int64, c_uint64, c_int64]),
    "gnn_sampler_next": (c_int, [c_void_p, POINTER(gnn_minibatch)]),
    "gnn_minibatch_free": (None, [c_void_p, POINTER(gnn_minibatch)]),
    "io_read_graph": (c_int, [c_void_p, c_char_p, POINTER(io_read_options), POINTER(io_graph)]),
    "io_graph_free": (None, [c_void_p, POINTER(io_graph)]),
    "io_graph_matrix": (c_int, [c_void_p, POINTER(io_graph), c_bool, c_int, c_bool, POINTER(sp_csr)]),
}
