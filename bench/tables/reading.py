"""Reading and writing text: the stages of bench/bench_contract.sh's run from file to file."""
import statistics

STAGES = (("read_graph", "read the graph", lambda r: r["graph"]["bytes"]),
          ("read_labels", "read the labels", lambda r: r["labels"]["bytes"]),
          ("build", "build the matrix", None), ("contract", "contract", None),
          ("write", "write the quotient", None))


def reading_table(results):
    lines = []
    for result in results:
        reports = result["reports"]
        lines += ["", f"{reports[0]['threads']} threads, {result['date']}, commit {result['commit']}, median of "
                  f"{len(reports)} runs, {reports[0]['graph']['edges'] / 1e6:.0f} M weighted edges in Matrix Market:", "",
                  "| stage | bytes | seconds | MB/s | least to greatest, s |", "|---|--:|--:|--:|--:|"]
        for key, name, bytes_of in STAGES:
            times = [r["seconds"][key] for r in reports]
            size = result["written_bytes"] if key == "write" else bytes_of(reports[0]) if bytes_of else None
            middle = statistics.median(times)
            lines.append(f"| {name} | {f'{size / 1e6:.0f} MB' if size else ''} | {middle:.3f} | "
                         f"{f'{size / middle / 1e6:.0f}' if size else ''} | {min(times):.3f} to {max(times):.3f} |")
        total = [r["seconds"]["total"] for r in reports]
        lines.append(f"| whole run | | {statistics.median(total):.3f} | | {min(total):.3f} to {max(total):.3f} |")
    return "\n".join(lines[1:])
