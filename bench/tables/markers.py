"""Which table stands at which marker: <!-- bench:NAME --> ... <!-- /bench -->."""
import glob
import os
import re

from . import calls, compact, contract, gnn, markov, partitions, ranks, reading, spgemm, spmm, survey
from .cases import all_cases
from .common import load, tables

FP64 = "spgemm-*-fp64.json"
SPGEMM_TABLES = (("spgemm-gpu", "spgemm-*.json", spgemm.spgemm_gpu_rows),
                 ("spgemm-cpu", "spgemm-*.json", spgemm.spgemm_cpu_rows),
                 ("spgemm-phases-gpu", FP64, spgemm.gpu_phase_rows), ("spgemm-phases-cpu", FP64, spgemm.cpu_phase_rows),
                 ("spgemm-plan", FP64, spgemm.spgemm_plan_rows),
                 ("spgemm-stage", "spgemm-*.json", spgemm.spgemm_stage_rows))
SPMM_TABLES = (("spmm-f32", "spmm-*.json", spmm.spmm_f32_rows), ("spmm-f16", "spmm-*.json", spmm.spmm_small_rows),
               ("spmm-cpu", "spmm-*.json", spmm.spmm_cpu_rows), ("spmm-warps", "spmm-*.json", spmm.spmm_warp_rows),
               ("spmm-partitions", "spmm-*.json", spmm.spmm_partition_rows),
               ("spmm-amortised", "spmm-*.json", spmm.spmm_amortised_rows),
               ("spmm-sizes", "spmm-*.json", spmm.spmm_size_rows), ("spmm-host", "spmm-*.json", spmm.spmm_host_rows))
CONTRACT_TABLES = (("contract", contract.contract_rows), ("contract-stage", contract.contract_stage_rows))


def all_tables(folder):
    """{marker: text} of the results in a folder."""
    def results(pattern):
        return load(sorted(glob.glob(os.path.join(folder, pattern))))

    networks, runs = results("mcl-*.json"), gnn.gnn_runs(glob.glob(os.path.join(folder, "gnn-*.json")))
    made = {"mcl": markov.results_table(networks), "mcl-phases": markov.phases_table(networks)}
    made.update((marker, tables(results(pattern), rows)) for marker, pattern, rows in SPGEMM_TABLES)
    made["aia-l1"] = tables(results("aia-l1-*.json"), spgemm.first_level_rows, spgemm.first_level_heading)
    made.update((marker, tables(results(pattern), rows, spmm.spmm_heading)) for marker, pattern, rows in SPMM_TABLES)
    made["spmm-small"] = spmm.spmm_small_table(results("spmm-*.json"))
    made.update((marker, tables(results("contract-*.json"), rows)) for marker, rows in CONTRACT_TABLES)
    made.update((marker, gnn.gnn_table(runs, part, rows)) for marker, part, rows in gnn.GNN_TABLES)
    surveyed = results("survey-h200-*.json")
    made["survey"], made["survey-short"] = survey.survey_table(surveyed), survey.short_table(surveyed)
    surveyed = results("survey-cpu-*.json")
    made["survey-cpu"], made["survey-cpu-families"] = survey.survey_table(surveyed), survey.family_table(surveyed)
    volumes = results("volume-*.json")
    made.update({"ranks": ranks.ranks_table(results("ranks-*.json")), "cards": ranks.cards_table(networks, volumes),
                 "volume-check": ranks.check_table(volumes), "volume": ranks.volume_table(volumes),
                 "volume-hosts": ranks.extrapolation_table(volumes), "volume-growing": ranks.growing_table(volumes),
                 "sizing": ranks.sizing_table(volumes)})
    made["partitions"] = partitions.partitions_table(results("partitions-*.json"))
    made["python-calls"] = calls.calls_table(results("python-calls-*.json"))
    made["reading"] = reading.reading_table(results("text-*.json"))
    cases = all_cases(results, runs)
    made["summary"] = compact.summary_table(cases)
    cases["gnn"] += cases.pop("sampling")
    made.update(("compact-" + operation, compact.compact_table(operation, found)) for operation, found in cases.items())
    return made


def filled(text, made):
    """The text with every marked table made anew; a marker that has no table is an error."""
    def replaced(match):
        table = made[match[2]]
        return match[1] + (table + "\n" if table else "") + match[3]

    return re.sub(r"(<!-- bench:([\w-]+) -->\n).*?(<!-- /bench -->)", replaced, text, flags=re.S)


def shown(paths):
    """The tables of these results, for the screen."""
    runs = gnn.gnn_runs(path for path in paths if os.path.basename(path).startswith("gnn-"))
    made = [gnn.gnn_table(runs, part, rows) for _, part, rows in gnn.GNN_TABLES]
    for result in load(paths):
        if result["bench"] == "spmm":
            made += [tables([result], rows, spmm.spmm_heading) for rows in
                     dict.fromkeys(rows for _, _, rows in SPMM_TABLES)]
        elif result["bench"] == "aia-l1":
            made.append(tables([result], spgemm.first_level_rows, spgemm.first_level_heading))
        elif result["bench"] == "spgemm":
            made += [tables([result], rows) for rows in
                     (spgemm.spgemm_rows, spgemm.spgemm_plan_rows, spgemm.spgemm_stage_rows)]
        elif result["bench"] == "contract":
            made += [tables([result], rows) for _, rows in CONTRACT_TABLES]
    return [table for table in made if table]
