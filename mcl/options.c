/* Defaults and resource schemes of mcl 22-282. */
#include "mcl.h"

void mcl_options_default(mcl_options *options)
{
    if (!options) return;
    *options = (mcl_options){
        .inflation = 2,
        .initial_inflation = 2,
        .main_length = 10000,
        .loop_factor = 1,
        .discard_loops = true,
        .prune_number = 10000,
        .select = 1100,
        .recover = 1400,
        .recover_percent = 90,
        .dense_factor = 10,
    };
}

sp_status mcl_options_scheme(sp_context *context, mcl_options *options, int scheme)
{
    static const int64_t schemes[7][3] = {{3000, 400, 500}, {4000, 500, 600},   {5000, 600, 700},   {6000, 700, 800},
                                          {7000, 800, 900}, {10000, 1100, 1400}, {10000, 1200, 1600}};
    if (!options) return sp_fail(context, SP_ERROR_ARGUMENT, "%s: options is NULL", __func__);
    if (scheme < 1 || scheme > 7)
        return sp_fail(context, SP_ERROR_ARGUMENT, "there is no resource scheme %d; schemes are 1 to 7", scheme);
    options->prune_number = schemes[scheme - 1][0];
    options->select = schemes[scheme - 1][1];
    options->recover = schemes[scheme - 1][2];
    options->recover_percent = 90;
    return SP_OK;
}

double mcl_options_cutoff(const mcl_options *options)
{
    if (options->prune_cutoff > 0) return options->prune_cutoff;
    return options->prune_number > 0 ? 0.99999 / (double)options->prune_number : 0;
}
